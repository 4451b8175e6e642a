package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// sketches are the distributions of a stage's columns over all members. fault is an error of
// the settings.
func sketches(ctx context.Context, flock table.Flock, rows table.Source, columns []string, fault error, settings ...any) (map[string]*Sketch, error) {
	own := make(map[string]*Sketch)
	if fault == nil {
		fault = collect(ctx, rows, columns, table.Number, func(c *table.Column) {
			if own[c.Name] == nil {
				own[c.Name] = &Sketch{}
			}
			own[c.Name].Add(c.Numbers...)
		})
	}
	return gather(ctx, flock, part[*Sketch]{own, fault, append(settings, columns)}, mergedSketches)
}

// Bins replaces each number by the number of its bin, from 0. Bins hold about equally
// many rows; there are as many as Sketch.ErrorBound can distinguish. If a bin's share of the
// rows or more have the least number, this is an edge, and bin 0 is of what is below.
type Bins struct {
	// Columns are those that are binned; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	// Count is how many bins there are at most. Default: 32.
	Count int `json:"count,omitempty"`
	// Learned has the edges between bins, ascending: a number is in the bin of as many edges
	// as it is not below.
	Learned map[string][]float64 `json:"learned,omitempty"`
}

const (
	defaultBins = 32
	maxBins     = 1024
)

// Fit implements table.Stage.
func (s *Bins) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	s.Count, s.Learned = cmp.Or(s.Count, defaultBins), nil
	all, err := sketches(ctx, flock, rows, s.Columns, s.check(), s.Count)
	if err != nil {
		return fmt.Errorf("binning: %w", err)
	}
	shares := make([]float64, s.Count-1)
	for i := range shares {
		shares[i] = float64(i+1) / float64(s.Count)
	}
	s.Learned = make(map[string][]float64, len(all))
	for column, sketch := range all {
		if sketch == nil {
			continue
		}
		s.Learned[column] = slices.Compact(slices.DeleteFunc(sketch.Quantiles(shares...), math.IsNaN))
	}
	return nil
}

func (s *Bins) check() error {
	if s.Count != 0 && (s.Count < 2 || s.Count > maxBins) {
		return fmt.Errorf("Count is %d: want 2 to %d, or 0 for %d", s.Count, maxBins, defaultBins)
	}
	for column, edges := range s.Learned {
		if len(edges) >= maxBins || !slices.IsSorted(edges) {
			return fmt.Errorf("column %q has %d edges: want less than %d, ascending", column, len(edges), maxBins)
		}
	}
	return nil
}

// Transform implements table.Stage.
func (s *Bins) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Number, s.Learned, func(c *table.Column, edges []float64) []table.Column {
		return mapped(c, func(x float64) float64 {
			bin, found := slices.BinarySearch(edges, x)
			if found {
				bin++
			}
			return float64(bin)
		})
	})
}

// Fences says how Outliers computes its limits.
type Fences string

const (
	// Quartiles are Tukey's fences: from the first quartile less Reach times the distance of the
	// quartiles, to the third and as much. It is the default.
	Quartiles Fences = "quartiles"
	// MedianDeviation is Reach times the median distance from the median to both sides of it, by
	// 1.4826, which of normal numbers makes it the standard deviation (Hampel, 1974).
	MedianDeviation Fences = "median-deviation"
)

// Outliers moves numbers beyond a lower or upper fence to the fence, or makes them missing. It
// leaves a column as it is if half or more of its numbers are equal, for example mostly 0.
type Outliers struct {
	// Columns are those that are kept within; none are all of numbers.
	Columns []string `json:"columns,omitempty"`
	By      Fences   `json:"by,omitempty"`
	// Reach is how far the fences are. Default: 3.
	Reach float64 `json:"reach,omitempty"`
	// Remove takes numbers beyond for missing.
	Remove bool `json:"remove,omitempty"`
	// Learned has the two fences.
	Learned map[string][2]float64 `json:"learned,omitempty"`
}

const defaultReach = 3

// Fit implements table.Stage.
func (s *Outliers) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	s.Reach = cmp.Or(s.Reach, defaultReach)
	all, err := sketches(ctx, flock, rows, s.Columns, s.check(), s.By, s.Reach, s.Remove)
	if err != nil {
		return fmt.Errorf("finding outliers: %w", err)
	}
	s.Learned = make(map[string][2]float64, len(all))
	for column, sketch := range all {
		if sketch == nil || sketch.Count == 0 {
			continue
		}
		low, high, unit := s.middle(sketch)
		if unit == 0 {
			continue // both fences would be the same number
		}
		s.Learned[column] = [2]float64{max(low-s.Reach*unit, -math.MaxFloat64), min(high+s.Reach*unit, math.MaxFloat64)}
	}
	return nil
}

func (s *Outliers) check() (fault error) {
	if !(s.Reach >= 0 && s.Reach <= math.MaxFloat32) {
		fault = fmt.Errorf("Reach is %g: want a number above 0", s.Reach)
	}
	if s.By != "" && s.By != Quartiles && s.By != MedianDeviation {
		fault = errors.Join(fault, fmt.Errorf("By is %q: want %s or %s", s.By, Quartiles, MedianDeviation))
	}
	return fault
}

// normalDeviations times the median distance of normally distributed numbers from their median is their standard deviation.
const normalDeviations = 1.4826

// middle returns the range that is within the fences whatever Reach is, and the unit of Reach.
func (s *Outliers) middle(of *Sketch) (low, high, unit float64) {
	if s.By != MedianDeviation {
		q := of.Quantiles(0.25, 0.75)
		return q[0], q[1], q[1] - q[0]
	}
	median := of.Quantile(0.5)
	return median, median, normalDeviations * of.mapped(func(x float64) float64 { return math.Abs(x - median) }).Quantile(0.5)
}

// Transform implements table.Stage.
func (s *Outliers) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Number, s.Learned, func(c *table.Column, fences [2]float64) []table.Column {
		return mapped(c, func(x float64) float64 {
			near := min(max(x, fences[0]), fences[1])
			if s.Remove && near != x {
				return math.NaN()
			}
			return near
		})
	})
}
