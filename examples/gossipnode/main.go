// Gossipnode trains a model on pictures or tables together with other processes of this program, without a server. It
// is the sample program of the library and a small tool.
//
//	gossipnode local                             four peers on this machine
//	gossipnode run                               one peer
//	gossipnode run --join HOST:PORT              another one, anywhere
//	gossipnode bridge                            one whose trainer is another process, such as Python's
//	gossipnode keygen --out node.key             an identity that lasts
//	gossipnode data fetch cifar10                pictures to learn from
//	gossipnode doctor --join HOST:PORT           what would keep this peer from joining
//	gossipnode status --join HOST:PORT           who takes part, and how each gets on
//	gossipnode topology --peers 64               who would talk to whom
//	gossipnode inspect DIR                       what a checkpoint holds
//	gossipnode export DIR --out FILE             the model in it, for other programs
//	gossipnode describe                          what the data of all members are like
//	gossipnode fit, gossipnode predict           learners on tables, and what they say
//	gossipnode serve --model FILE                predictions over HTTP
//	gossipnode plot FILE                         how a run went, as a picture
//	gossipnode plan TASKS.yaml                   who would do which task, and when
//	gossipnode search SPACE.yaml                 settings found by many trials, most of which end early
//	gossipnode simulate, gossipnode compare      many peers and rivals in virtual time
//
// A newcomer begins with docs/GUIDE.md, an operator with docs/OPERATING.md.
//
// Every flag can also be a key of a YAML file given with --config, or an
// environment variable such as GOSSIPNODE_BATCH; a flag comes before the
// environment, and that before the file. Logs and progress go to standard error.
// With --json the last line of standard output is one JSON object. The exit code
// is 0 when the work is done, 1 when it failed, 2 when the command line is wrong,
// 3 when the work is done but not the final merge that was asked for.
//
// Limits: the models of package nets and the data of package dataset. A service that
// trains its own model embeds package peer instead; examples/embed shows how
// little that takes.
//
// Each command has its own folder and uses package cli. To read the program, begin with run (a command), train (one
// peer from its data to its result) and local (which watches several peers). Commands share these packages: settings,
// keys, workload, result, watch (reports, tables), supervise (several peers on this machine), operator, checkpoint.
// metrics and dashboard use web to show a peer.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bridge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/compare"
	"github.com/seed-97356399/murmuration/examples/gossipnode/control"
	"github.com/seed-97356399/murmuration/examples/gossipnode/describe"
	"github.com/seed-97356399/murmuration/examples/gossipnode/doctor"
	"github.com/seed-97356399/murmuration/examples/gossipnode/fetch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/fit"
	"github.com/seed-97356399/murmuration/examples/gossipnode/history"
	"github.com/seed-97356399/murmuration/examples/gossipnode/inspect"
	"github.com/seed-97356399/murmuration/examples/gossipnode/invite"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/local"
	"github.com/seed-97356399/murmuration/examples/gossipnode/overlay"
	"github.com/seed-97356399/murmuration/examples/gossipnode/plan"
	"github.com/seed-97356399/murmuration/examples/gossipnode/predict"
	"github.com/seed-97356399/murmuration/examples/gossipnode/run"
	"github.com/seed-97356399/murmuration/examples/gossipnode/sample"
	"github.com/seed-97356399/murmuration/examples/gossipnode/search"
	"github.com/seed-97356399/murmuration/examples/gossipnode/serve"
	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
	"github.com/seed-97356399/murmuration/examples/gossipnode/status"
	"github.com/seed-97356399/murmuration/examples/gossipnode/version"
)

func main() {
	os.Exit(execute(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// execute runs one command line and returns its exit code.
func execute(args []string, std cli.Streams) int { return cli.Execute(newRoot(std), args) }

func newRoot(std cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "gossipnode",
		Short: "Train one model together with others, with no server",
		Long: `Gossipnode trains a model on pictures or tables together with other processes like it.
Each has its own data, and now and then averages its model with one neighbour.
There is no server, nobody waits for anybody, and any of them may fail.`,
		Example: `  gossipnode local
  gossipnode local --peers 8 --dataset mnist --data DIR --epochs 3
  gossipnode run --listen 0.0.0.0:4001
  gossipnode run --join 192.0.2.7:4001`,
	}
	cli.Root(root)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.AddCommand(run.Command(std), local.Command(std), bridge.Command(std), history.Command(std), plan.Command(std), search.Command(std), sample.Command(std), simulate.Command(std), compare.Command(std), keys.Command(std), control.Command(std), overlay.Command(std), doctor.Command(std), invite.Command(std), bench.Command(std), fetch.Command(std), describe.Command(std), fit.Command(std), predict.Command(std), serve.Command(std),
		inspect.Command(std), inspect.ExportCommand(std), status.Command(std), version.Command(std))
	return root
}
