package prepare

import (
	"context"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Standardize gives numbers the mean 0 and the variance 1 over all rows of all members; a
// column with only one value becomes 0. Missing values stay missing.
type Standardize struct {
	// Columns are those that are scaled; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Scale `json:"learned,omitempty"`
}

// Scale makes (x − From − Rest) / By of x, and 0 if By is 0. From + Rest is the mean for
// Standardize: of large numbers that hardly differ, a mean needs more digits than one float64 holds.
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
func (s *Standardize) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	own := make(map[string]Moments)
	err := collect(ctx, rows, s.Columns, table.Number, func(c *table.Column) {
		m := own[c.Name]
		m.Add(c.Numbers...)
		own[c.Name] = m
	})
	all, err := gather(ctx, flock, part[Moments]{own, err, []any{s.Columns}}, func(a, b Moments) Moments {
		a.Merge(b)
		return a
	})
	if err != nil {
		return fmt.Errorf("standardizing: %w", err)
	}
	s.Learned = make(map[string]Scale, len(all))
	for column, m := range all {
		s.Learned[column] = Scale{From: m.Near, Rest: m.Off, By: math.Sqrt(m.Variance())}
	}
	return s.check()
}

func checkScales(learned map[string]Scale) error {
	for column, s := range learned {
		if x := s.From + s.Rest + s.By; x-x != 0 {
			return fmt.Errorf("scaling column %q by %g from %g: its numbers are %w", column, s.By, s.From, table.ErrNumbers)
		}
	}
	return nil
}

// Transform implements table.Stage.
func (s *Standardize) Transform(b *table.Batch) (*table.Batch, error) { return scaled(b, s.Learned) }

func scaled(b *table.Batch, learned map[string]Scale) (*table.Batch, error) {
	return replaced(b, table.Number, learned, func(c *table.Column, of Scale) []table.Column { return mapped(c, of.of) })
}

// MinMax maps the least number of each column to 0 and the largest to 1. When the model serves, a row may have numbers outside
// of 0 to 1.
type MinMax struct {
	// Columns are those that are scaled; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Scale `json:"learned,omitempty"`
}

// Fit implements table.Stage.
func (s *MinMax) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
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
	all, err := gather(ctx, flock, part[[2]float64]{own, err, []any{s.Columns}}, func(a, b [2]float64) [2]float64 {
		return [2]float64{min(a[0], b[0]), max(a[1], b[1])}
	})
	if err != nil {
		return fmt.Errorf("scaling to 0 and 1: %w", err)
	}
	s.Learned = make(map[string]Scale, len(all))
	for column, ends := range all {
		s.Learned[column] = Scale{From: ends[0], By: ends[1] - ends[0]}
	}
	return s.check()
}

// Transform implements table.Stage.
func (s *MinMax) Transform(b *table.Batch) (*table.Batch, error) { return scaled(b, s.Learned) }
