package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
)

// newBench makes the command that measures.
func newBench(std streams) *cobra.Command {
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
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newBenchExchange(std), newBenchKernel(std), newBenchCodec(std), newBenchMatmul(std), newBenchStep(std), newBenchState(std))
	return cmd
}

// printBench prints figures for a person, and as JSON if asked to: then that is
// all there is on standard output.
func printBench(figures fmt.Stringer, asJSON bool, std streams) error {
	var words io.Writer = std.out
	if asJSON {
		words = std.err
	}
	_, err := io.WriteString(words, figures.String())
	if err == nil && asJSON {
		err = json.NewEncoder(std.out).Encode(figures)
	}
	if err != nil {
		return fmt.Errorf("printing the figures: %w", err)
	}
	return nil
}

// within is a fault if value is not from least to most.
func within(flag string, value, least, most int) error {
	if value < least || value > most {
		return faultf(flag, "%d: want %d to %d", value, least, most)
	}
	return nil
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

// What stands for names that the system does not tell.
const unknownAlgorithm = "unknown"

func unknownProcessor() string { return runtime.GOARCH }
