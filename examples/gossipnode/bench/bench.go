package bench

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// Command makes the command that measures.
func Command(std cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine, beside a reference in the same run",
		Long: `Bench measures what limits training on this machine. Each figure stands beside a
reference that was measured in the same run, in turn with it, so that a machine
that is busy or slow changes the times more than the ratios.`,
		Example: `  gossipnode bench exchange --parameters 25000000
  gossipnode bench kernel
  gossipnode bench codec
  gossipnode bench matmul
  gossipnode bench step --model mlp
  gossipnode bench state`,
		Args: cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newExchange(std), newKernel(std), newCodec(std), newMatmul(std), newStep(std), newState(std))
	return cmd
}

// measurable are the settings of a measurement in this process.
type measurable[F fmt.Stringer] interface {
	validate(cli.Origins) error
	measure() (F, error)
}

// measured fills in the settings, asJSON among them, measures, and prints the figures.
func measured[F fmt.Stringer](cmd *cobra.Command, s measurable[F], asJSON *bool, std cli.Streams) error {
	sources, err := cli.Resolve(cmd)
	if err != nil {
		return err
	}
	if err := s.validate(sources); err != nil {
		return err
	}
	figures, err := s.measure()
	if err != nil {
		return err
	}
	return cli.Print(figures, *asJSON, std)
}

// median is the middle of the values, or the mean of the middle two; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// quotients are those of the values of each round.
func quotients(above, below []float64) []float64 {
	all := make([]float64, min(len(above), len(below)))
	for i := range all {
		all[i] = above[i] / below[i]
	}
	return all
}

// thousands writes a whole number with commas.
func thousands(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
