// Package measure has the parts that all measurements share: running, printing, medians, and random values.
package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/tensor"
)

// measurable is the settings of a measurement.
type measurable[F fmt.Stringer] interface {
	Validate(cli.Origins) error
	Measure(cli.Streams) (F, error)
}

// Run reads the settings, including asJSON, measures, and prints the figures.
func Run[F fmt.Stringer](cmd *cobra.Command, s measurable[F], asJSON *bool, std cli.Streams) error {
	sources, err := cli.Resolve(cmd)
	if err != nil {
		return err
	}
	if err := s.Validate(sources); err != nil {
		return err
	}
	figures, err := s.Measure(std)
	if err != nil {
		return err
	}
	return cli.Print(figures, *asJSON, std)
}

// Median is the middle one of the values, or the mean of the middle two; 0 without values.
func Median(values []float64) float64 {
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

// Whole is the median number of allocations divided by each, the number of slices or steps, and rounded down. It is
// whole, like the result of testing.AllocsPerRun, and a single allocation of the runtime does not change it.
func Whole(mallocs []float64, each float64) float64 {
	return max(0, math.Floor(Median(mallocs)/each))
}

// Quotients divides the values of each round.
func Quotients(above, below []float64) []float64 {
	all := make([]float64, min(len(above), len(below)))
	for i := range all {
		all[i] = above[i] / below[i]
	}
	return all
}

// Thousands writes a whole number with commas.
func Thousands(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Fill draws values of a size that is common for parameters. Each stream of a seed has other values.
func Fill(v tensor.Vector, seed, stream uint64) {
	const spread = 0.1
	source := rand.New(rand.NewPCG(seed, stream))
	for i := range v {
		v[i] = spread * (source.Float32() - 0.5)
	}
}

// MaxRounds bounds the rounds of a measurement.
const MaxRounds = 1000
