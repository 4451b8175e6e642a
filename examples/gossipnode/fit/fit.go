// Package fit is the command fit: it fits learners to tables by sums, on this machine or together with peers
// elsewhere. Begin with work.go.
package fit

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/supervise"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
)

// Command makes the command that fits a learner to a table.
func Command(std cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Fit a learner to tables, on this machine or with others",
		Long: `Fit prepares the rows of a table (what is missing, scales, categories) and fits a
learner to them, by sums over all peers: each has rows of its own, none shows them to
another, and all end with the same model, that of one process with all rows.`,
		Annotations: map[string]string{cli.Details: `Peers on several machines: the first begins with --listen and --min-peers, and prints how
to join it; the others need that and --data of their own, and take over the rest. Who gives other
settings, or other columns, is not let in.

With --peers the rows of --data are divided among processes of this machine; --alone also
tells how far each would have come with its own rows. Ctrl-C asks all of them to leave in good
order; a second one kills them.

Rows that cannot be read are set aside and counted, up to --tolerance of them. The scores
are of the rows that --split holds out, over all peers.`},
		Example: `  gossipnode fit --data flights.csv.gz --target 'arr_delay>15' --drop dep_delay --learner boost --out late.model
  gossipnode fit --data flights.csv.gz --target 'arr_delay>15' --drop dep_delay --peers 4 --shard by=carrier --alone
  gossipnode fit --data mine.parquet --target price --learner linear --listen 0.0.0.0:4001 --min-peers 2
  gossipnode fit --data theirs.parquet --join 192.0.2.7:4001`,
		Args: cli.FlagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.load(cmd, std); err != nil {
				return err
			}
			return run(cmd, o, std)
		},
	}
	o.register(cmd.Flags())
	cli.TakeFile(cmd.Flags())
	return cmd
}

// run fits, either as a peer that reports to its parent or for a person.
func run(cmd *cobra.Command, o options, std cli.Streams) error {
	if o.Report {
		parent, _, _ := cli.UntilParentGone(context.Background(), std.In)
		ctx, release := cli.UntilSignal(parent, func() { os.Exit(cli.ExitFailed) })
		defer release()
		tell := watch.LineReporter(std.Out)
		done, err := fitHere(o, ctx, tell, std)
		tell(outcome(done, err))
		if err != nil {
			return cli.Reported{Cause: err}
		}
		return nil
	}
	inProcess := o.InProcess || o.Peers == 1
	ctx, kill, release := supervise.UntilSignal(inProcess)
	defer release()
	config := processes(o, cmd)
	if inProcess {
		var err error
		if config, err = goroutines(ctx, o); err != nil {
			return err
		}
	}
	config.Line, config.Display = lineOf(o.Peers), watch.NewDisplay(std.Err, "", watch.Doing{Begun: time.Now(), Counted: "sum", Idle: "reading, or waiting for others"})
	peers := supervise.New(config, o.Peers)
	peers.Run(ctx, kill)
	done, err := combine(peers, o.Out)
	if err != nil {
		return err
	}
	return cli.Print(done, o.JSON, std)
}

// fitHere fits as one peer of a fit whose other peers are elsewhere.
func fitHere(o options, ctx context.Context, tell watch.Reporter, std cli.Streams) (Result, error) {
	source, err := rows.Open(ctx, o.Table, false)
	if err != nil {
		return Result{}, err
	}
	o.Columns = source.Columns()
	m := &member{options: o, number: max(o.Part, 0), source: source, join: o.Joiner(std.Err), tell: tell}
	return m.run(ctx)
}
