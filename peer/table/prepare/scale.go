package prepare

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Standardize gives numbers the mean 0 and the variance 1 over all rows of all members; those
// of a column with one value become 0. What is missing stays so.
type Standardize struct {
	// Columns are those that are scaled; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Scale `json:"learned,omitempty"`
}

// Scale makes (x − From − Rest) / By of x, and 0 if By is 0: a mean of large numbers that hardly
// differ has more digits than one number holds.
type Scale struct {
	From float64 `json:"from"`
	Rest float64 `json:"rest,omitempty"`
	By   float64 `json:"by"`
}

func (s Scale) of(x float64) float64 {
	if s.By == 0 {
		return 0
	}
	return ((x - s.From) - s.Rest) / s.By
}

// Fit implements table.Stage.
func (s *Standardize) Fit(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	all, err := momentsOf(ctx, flock, name, rows, s.Columns)
	if err != nil {
		return fmt.Errorf("standardizing: %w", err)
	}
	s.Learned = make(map[string]Scale, len(all))
	for column, m := range all {
		s.Learned[column] = Scale{From: m.Near, Rest: m.Off, By: math.Sqrt(m.Variance())}
	}
	return nil
}

// Transform implements table.Stage.
func (s *Standardize) Transform(b *table.Batch) (*table.Batch, error) { return scaled(b, s.Learned) }

func scaled(b *table.Batch, learned map[string]Scale) (*table.Batch, error) {
	return replaced(b, table.Number, learned, func(c *table.Column, of Scale) []table.Column { return mapped(c, of.of) })
}

// MinMax makes the least number of each column 0 and the largest 1. Serving may see others.
type MinMax struct {
	// Columns are those that are scaled; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Scale `json:"learned,omitempty"`
}

// Fit implements table.Stage.
func (s *MinMax) Fit(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	own := make(map[string][2]float64)
	err := collect(ctx, rows, s.Columns, table.Number, func(c *table.Column) {
		for _, x := range c.Numbers {
			ends, seen := own[c.Name]
			switch {
			case math.IsNaN(x):
			case !seen:
				own[c.Name] = [2]float64{x, x}
			default:
				own[c.Name] = [2]float64{min(ends[0], x), max(ends[1], x)}
			}
		}
	})
	if err != nil {
		return fmt.Errorf("scaling to 0 and 1: %w", err)
	}
	all, err := gather(ctx, flock, name, own, func(a, b [2]float64) ([2]float64, error) {
		return [2]float64{min(a[0], b[0]), max(a[1], b[1])}, nil
	})
	if err != nil {
		return err
	}
	s.Learned = make(map[string]Scale, len(all))
	for column, ends := range all {
		s.Learned[column] = Scale{From: ends[0], By: ends[1] - ends[0]}
	}
	return nil
}

// Transform implements table.Stage.
func (s *MinMax) Transform(b *table.Batch) (*table.Batch, error) { return scaled(b, s.Learned) }

// By is what Impute puts where a value is missing.
type By string

const (
	Mean     By = "mean"     // of the numbers, over all rows of all members; the default
	Median   By = "median"   // within the error of a Sketch
	Constant By = "constant" // Impute.Value
)

// Impute fills in numbers that are missing.
type Impute struct {
	// Columns are those that are filled; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	By      By       `json:"by,omitempty"`
	Value   float64  `json:"value,omitempty"`
	// Indicator adds, for each column in which values were missing, one named "COLUMN is
	// missing" of 0 and 1.
	Indicator bool `json:"indicator,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Filling `json:"learned,omitempty"`
}

// Filling is what stands for missing values of a column.
type Filling struct {
	Value float64 `json:"value"`
	// Some says that there were any.
	Some bool `json:"some,omitempty"`
}

// missing is the name of the column that tells where c has no value.
func missing(column string) string { return column + " is missing" }

// Fit implements table.Stage. A column without any value is an error, unless it is filled
// with a constant.
func (s *Impute) Fit(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	if s.By != "" && s.By != Mean && s.By != Median && s.By != Constant {
		return fmt.Errorf("filling in by %q: want %s, %s or %s", s.By, Mean, Median, Constant)
	}
	type seen struct {
		Moments Moments `json:"moments"`
		Sketch  *Sketch `json:"sketch,omitempty"`
		Missing float64 `json:"missing"`
	}
	own := make(map[string]seen)
	err := collect(ctx, rows, s.Columns, table.Number, func(c *table.Column) {
		of := own[c.Name]
		there := of.Moments.Count
		of.Moments.Add(c.Numbers...)
		of.Missing += float64(len(c.Numbers)) - (of.Moments.Count - there)
		if s.By == Median {
			if of.Sketch == nil {
				of.Sketch = &Sketch{}
			}
			of.Sketch.Add(c.Numbers...)
		}
		own[c.Name] = of
	})
	if err != nil {
		return fmt.Errorf("filling in: %w", err)
	}
	all, err := gather(ctx, flock, name, own, func(a, b seen) (seen, error) {
		a.Moments.Merge(b.Moments)
		a.Missing += b.Missing
		var err error
		a.Sketch, err = mergedSketches(a.Sketch, b.Sketch)
		return a, err
	})
	if err != nil {
		return err
	}
	s.Learned = make(map[string]Filling, len(all))
	for _, column := range slices.Sorted(maps.Keys(all)) {
		of := all[column]
		filling := Filling{Value: of.Moments.Mean(), Some: of.Missing > 0}
		switch {
		case s.By == Constant:
			filling.Value = s.Value
		case of.Moments.Count == 0:
			return fmt.Errorf("filling in: column %q has no value in any row of any member: leave it out", column)
		case s.By == Median && of.Sketch == nil:
			return fmt.Errorf("filling in: no member brings the median of column %q: all need the same settings", column)
		case s.By == Median:
			filling.Value = of.Sketch.Quantile(0.5)
		}
		s.Learned[column] = filling
	}
	return nil
}

// Transform implements table.Stage.
func (s *Impute) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Number, s.Learned, func(c *table.Column, of Filling) []table.Column {
		full := table.Column{Name: c.Name, Kind: table.Number, Numbers: slices.Clone(c.Numbers)}
		flags := table.Column{Name: missing(c.Name), Kind: table.Number, Numbers: make([]float64, len(c.Numbers))}
		for i, x := range c.Numbers {
			if math.IsNaN(x) {
				full.Numbers[i], flags.Numbers[i] = of.Value, 1
			}
		}
		if s.Indicator && of.Some {
			return []table.Column{full, flags}
		}
		return []table.Column{full}
	})
}
