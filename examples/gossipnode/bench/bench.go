package bench

import (
	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/exchange"
	"github.com/seed-97356399/murmuration/examples/gossipnode/bench/step"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Command makes the command with the measurements.
func Command(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine, beside a reference in the same run",
		Long: `Bench measures what limits training on this machine. Each figure stands beside a
reference that was measured in the same run, in turn with it, so that a machine
that is busy or slow changes the times more than the ratios.`,
		Example: `  gossipnode bench exchange --parameters 25000000
  gossipnode bench step --model mlp`,
		Args: cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(exchange.Command(std), step.Command(std))
	return cmd
}
