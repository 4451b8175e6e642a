// Package run is the command run: one peer, started by a person or by the command local.
package run

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/train"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// Command makes the command run.
func Command(std cli.Streams) *cobra.Command {
	var (
		s         settings.Settings
		printOnly bool
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Train as one peer",
		Long: `Run trains as one peer until all peers together have done the work. With --join
it takes part in the run of another peer; without, it begins one, and prints how
to join it. Who cannot reach anybody waits for --join-wait, then trains alone
and keeps trying.`,
		Annotations: map[string]string{cli.Details: `When all have done the work, it evaluates the model on held-out data.
In the result, consensus_distance is 0 after a final merge, which all members that took
part have the same model from, and else null: the others' last exchanges may follow this
peer's. local measures it; metrics and dashboard estimate it while the run goes on.

With --checkpoint it keeps its state in a folder, and goes on from there when it is
started again. What nobody has set is taken over from the run that is joined, or from
the checkpoints; as long as neither tells, it waits, and says so, for --join-wait. Then
it trains alone, and begins anew if the run is found and is another. Where --join has
reached nobody it says so at the end, and exits with 4, unless --alone-ok is given.
SIGINT or SIGTERM make it save its state and leave in good order, within --leave-within,
with exit code 1; another one, a second later or more, ends it at once.`},
		Example: `  gossipnode run --listen 0.0.0.0:4001 --min-peers 2
  gossipnode run --join 192.0.2.7:4001 --dataset mnist --data DIR --part 1/4
  gossipnode run --join 192.0.2.7:4001 --checkpoint DIR --key node.key --json`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := s.Load(cmd)
			if err != nil {
				return err
			}
			if err := takeOver(cmd.Context(), &s, sources, std.Err); err != nil {
				return err
			}
			for range maxAnew {
				var taken []string
				if err = begin(s, sources, printOnly, std); s.Report {
					return err
				}
				if taken, err = rundescription.Retake(&s, sources, err); len(taken) == 0 {
					return err
				}
				fmt.Fprintf(std.Err, "the run that is joined is another than the one that this peer has begun alone: it begins anew, with %s\n", strings.Join(taken, ", "))
				if err := setAside(s.Checkpoints()); err != nil {
					return err
				}
			}
			return fmt.Errorf("the run that is joined has become another %d times: start this peer again", maxAnew)
		},
	}
	s.Register(cmd.Flags())
	cmd.Flags().BoolVar(&printOnly, "print-policy", false, "print how the joint layers of the model are coded, as a file for --policy, and end")
	cli.Group(cmd.Flags(), "Exchanges")
	cli.TakeFile(cmd.Flags())
	return cmd
}

// maxAnew bounds how often a peer starts anew.
const maxAnew = 8

// begin starts a peer with these settings.
func begin(s settings.Settings, from cli.Origins, printOnly bool, std cli.Streams) error {
	if err := cmp.Or(from.Usage(s.Unused(s.Gives(), s.TrainOnly)...), s.Validate(from)); err != nil {
		return err
	}
	if err := s.CheckFolders(); err != nil {
		return cli.Config(err)
	}
	if printOnly {
		return printCodecs(s, std.Out)
	}
	return runPeer(s, std)
}

// setAside moves the checkpoints of another run to a separate folder, so that this run does not continue from them.
func setAside(in checkpoint.Folder) error {
	names, err := in.Names()
	if err != nil || len(names) == 0 {
		return err
	}
	aside, err := os.MkdirTemp(in.Dir, "aside-")
	for i := 0; err == nil && i < len(names); i++ {
		err = os.Rename(filepath.Join(in.Dir, names[i]), filepath.Join(aside, names[i]))
	}
	return err
}

// takeOver asks the members to join for the description of the run, before anything is loaded. A child of local has
// its settings from its parent.
func takeOver(ctx context.Context, s *settings.Settings, from cli.Origins, errs io.Writer) error {
	if len(s.Join) == 0 || s.Report || s.Strategy == settings.StrategyAlone {
		return nil
	}
	if err := from.Usage(s.Network.Faults()...); err != nil {
		return err
	}
	log := s.NewLog(errs)
	defer p2pnet.BridgeLogs(log)()
	ctx, release := cli.UntilSignal(ctx, func() { os.Exit(cli.ExitFailed) })
	defer release()
	taken, err := rundescription.Await(ctx, s, from, log, func(line string) { fmt.Fprintln(errs, line) })
	if errors.Is(err, cli.ErrInterrupted) {
		return train.Interruption(*s, train.ErrNothingDone)
	}
	if len(taken) > 0 {
		fmt.Fprintf(errs, "as in the run that is joined: %s\n", strings.Join(taken, ", "))
	}
	return err
}

// runPeer runs a peer for a person, or for a parent process with --report.
func runPeer(s settings.Settings, std cli.Streams) error {
	parent, tell := context.Background(), watch.TextReporter(std.Err)
	var (
		begin <-chan struct{}
		said  <-chan string // lines of the parent after that
	)
	if s.Report {
		parent, begin, said = cli.UntilParentGone(parent, std.In)
		tell = watch.LineReporter(std.Out)
	}
	exit := func() { os.Exit(cli.ExitFailed) }
	ctx, release := cli.UntilSignal(parent, exit)
	defer release()
	defer leaveInTime(s, ctx, std.Err, exit)()
	log := s.NewLog(std.Err)
	defer p2pnet.BridgeLogs(log)()
	stayed, ended := false, error(nil)
	watcher := train.Observer{Log: log, Tell: tell, Begin: begin}
	if s.Stays(std.Err) {
		watcher.Stay = func(done result.Share, show func(result.Result)) {
			stayed, ended = true, end(s, done, nil, tell, std)
			log.Info("the dashboard stays until Ctrl-C")
			if !s.Report {
				show(done.Result)
			}
			var all result.Result
			select {
			case line := <-said:
				if json.Unmarshal([]byte(line), &all) == nil {
					show(all)
				}
			case <-ctx.Done():
			}
			<-ctx.Done()
		}
	}
	done, err := train.Run(ctx, s, watcher)
	if stayed {
		return cmp.Or(ended, err)
	}
	return end(s, done, err, tell, std)
}

// end reports the end of a peer.
func end(s settings.Settings, done result.Share, err error, tell watch.Reporter, std cli.Streams) error {
	if s.Report {
		tell(train.Outcome(done, err))
		if err = cmp.Or(err, done.Unsaved); err != nil {
			return cli.Reported{Cause: err}
		}
		return nil
	}
	if err != nil && (!s.Hold || done.Result.Travelled == nil) {
		return train.Interruption(s, err)
	}
	if err := errors.Join(cli.Print(done.Result, s.JSON, std), done.Unsaved); err != nil {
		return err
	}
	return cmp.Or(train.Interruption(s, err), done.Result.Unmerged(), done.NeverJoined(s.Join))
}

// leaveInTime calls exit if done is not called within --leave-within after ctx has ended.
func leaveInTime(s settings.Settings, ctx context.Context, errs io.Writer, exit func()) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(s.LeaveWithin)
		defer timer.Stop()
		select {
		case <-timer.C:
			fmt.Fprintf(errs, "gossipnode: leaving has taken longer than --leave-within %s: ending at once\n", s.LeaveWithin)
			exit()
		case <-over:
		}
	})
	return func() {
		stop()
		close(over)
	}
}

// printCodecs prints the policy with its defaults, in the format of --policy, and, as comments, the resulting codecs
// of the model's layers.
func printCodecs(s settings.Settings, out io.Writer) (err error) {
	if s.IsTable() {
		return cli.Usage(cli.Faultf("print-policy", "is for pictures: the model of a table has as many inputs as the members find when they prepare its rows"))
	}
	s.Checkpoint, s.Init = "", "" // values have no effect here
	work, err := workload.Prepare(context.Background(), s, make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Batches.Close()) }()
	policy, err := work.Codecs(s)
	if err != nil {
		return err
	}
	text, err := settings.PrintPolicy(policy.Effective())
	if err != nil {
		return err
	}
	for _, layer := range policy.Explain(work.Params.Layout()) {
		text += "# " + layer + "\n"
	}
	if _, err = io.Copy(out, strings.NewReader(text)); err != nil {
		return fmt.Errorf("printing the codec policy: %w", err)
	}
	return nil
}
