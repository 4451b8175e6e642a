package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench"
	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/fetch"
	"github.com/seed-97356399/murmuration/examples/gossipnode/overlay"
)

// execute runs one command line and returns its exit code.
func execute(args []string, std cli.Streams) int { return cli.Execute(newRoot(std), args) }

func newRoot(std cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "gossipnode",
		Short: "Train one model together with others, with no server",
		Long: `Gossipnode trains a model on pictures together with other processes like it.
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
	root.AddCommand(newRun(std), newLocal(std), newSimulate(std), newCompare(std), newKeygen(std), newControl(std), overlay.Command(std), newDoctor(std), bench.Command(std), fetch.Command(std),
		checkpoint.InspectCommand(std), checkpoint.ExportCommand(std), newConfig(std), newVersion(std))
	return root
}
