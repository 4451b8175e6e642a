package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// printEvery is the time between two lines of progress.
const printEvery = 2 * time.Second

// newRun makes the command that is one peer.
func newRun(std cli.Streams) *cobra.Command {
	var (
		s         settings
		printOnly bool
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Train as one peer",
		Long: `Run trains as one peer until all peers together have done the work, and then
evaluates the model on held-out data. With --join it takes part in the run of
another peer; without, it begins one, and prints how to join it. It never waits
for others: who cannot reach anybody trains alone and keeps trying.

In the result, consensus_distance is the distance of a model from the mean of
all, as measured by the last exchanges.

With --checkpoint it keeps its state in a folder, and goes on from there when it is
started again. SIGINT or SIGTERM make it save that and leave in good order, within
--leave-within, with exit code 1; a second one ends it at once.`,
		Example: `  gossipnode run --listen 0.0.0.0:4001
  gossipnode run --join 192.0.2.7:4001 --dataset mnist --data DIR --part 1/4
  gossipnode run --join 192.0.2.7:4001 --checkpoint DIR --key node.key --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.load(cmd)
			if err != nil {
				return err
			}
			if err := s.validate(sources); err != nil {
				return err
			}
			if err := s.checkFolders(); err != nil {
				return err
			}
			if printOnly {
				return s.printEffectivePolicy(std.Out)
			}
			if s.Report {
				return runReporting(s, std)
			}
			return runAlone(s, std)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&printOnly, printPolicyFlag, false, "print how the joint layers of the model are coded, as a file for --policy, and end")
	cmd.Flags().String(cli.ConfigFlag, "", "YAML file with the same keys as the flags")
	return cmd
}

// runAlone runs a peer that a person watches.
func runAlone(s settings, std cli.Streams) error {
	ctx, release := cli.UntilSignal(context.Background(), func() { os.Exit(cli.ExitFailed) })
	defer release()
	defer s.leaveInTime(ctx, std.Err, func() { os.Exit(cli.ExitFailed) })()
	log, tell := s.watchRun(std.Err)
	defer p2pnet.BridgeLogs(log)()
	done, err := train(ctx, s, log, tell, nil)
	if err != nil {
		return s.interruption(err)
	}
	if err := errors.Join(printResult(done.Result, s.JSON, std), done.unsaved); err != nil {
		return err
	}
	return done.Result.unmerged()
}

// runReporting runs a peer that a parent process watches.
func runReporting(s settings, std cli.Streams) error {
	parent, begin := cli.UntilParentGone(context.Background(), std.In)
	ctx, release := cli.UntilSignal(parent, func() { os.Exit(cli.ExitFailed) })
	defer release()
	defer s.leaveInTime(ctx, std.Err, func() { os.Exit(cli.ExitFailed) })()
	tell := lineReporter(std.Out)
	log := s.newLog(std.Err)
	defer p2pnet.BridgeLogs(log)()
	done, err := train(ctx, s, log, tell, begin)
	if err != nil {
		tell(failure(err))
		return reported{err}
	}
	tell(success(done))
	return asReported(done.unsaved)
}

// success reports that a peer has done its work.
func success(done share) report {
	r := report{Kind: reportResult, Share: &done}
	if done.unsaved != nil {
		r.Unsaved = done.unsaved.Error()
	}
	return r
}

// failure reports that a peer has given up.
func failure(err error) report {
	r := report{Kind: reportFailed, Failure: err.Error(), Code: cli.ExitCode(err), Interrupted: errors.Is(err, cli.ErrInterrupted)}
	var unsaved *unsavedError
	if errors.As(err, &unsaved) {
		r.Unsaved = unsaved.cause.Error()
	}
	return r
}

// reported is an error that the parent has been told of.
type reported struct{ error }

func (reported) Told() {}

func (r reported) Unwrap() error { return r.error }

// printResult prints a result in words, and as JSON if asked to: then that is
// all there is on standard output.
func printResult(r result, asJSON bool, std cli.Streams) error {
	var words io.Writer = std.Out
	if asJSON {
		words = std.Err
	}
	if _, err := fmt.Fprint(words, r.summary()); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	if !asJSON {
		return nil
	}
	if err := json.NewEncoder(std.Out).Encode(r); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}
