package prepare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// By says what Impute puts in place of a missing value.
type By string

const (
	Mean         By = "mean"          // mean of the numbers over all rows of all members; the default
	Median       By = "median"        // median, within the error of a Sketch
	Constant     By = "constant"      // Impute.Value
	MostFrequent By = "most-frequent" // most frequent value of a category; of several, the first in order
)

// Impute fills in numbers that are missing, or with MostFrequent categories.
type Impute struct {
	// Columns are those that are filled; none are all of numbers, or all categories.
	Columns []string `json:"columns,omitempty"`
	By      By       `json:"by,omitempty"`
	Value   float64  `json:"value,omitempty"`
	// Indicator adds, for each column in which values were missing, one named "COLUMN is
	// missing" of 0 and 1.
	Indicator bool `json:"indicator,omitempty"`
	// Learned is what Fit finds.
	Learned map[string]Filling `json:"learned,omitempty"`
}

// Filling is the value that replaces missing values of a column.
type Filling struct {
	Value float64 `json:"value"`
	// Text is that of a category.
	Text string `json:"text,omitempty"`
	// Some says that there were any.
	Some bool `json:"some,omitempty"`
}

// seen is what a member has learned of a column to fill.
type seen struct {
	Moments Moments            `json:"moments"`
	Sketch  *Sketch            `json:"sketch,omitempty"`
	Values  map[string]float64 `json:"values,omitempty"`
	Missing float64            `json:"missing"`
}

func (s seen) merge(o seen) seen {
	s.Moments.Merge(o.Moments)
	s.Missing += o.Missing
	s.Values, s.Sketch = mergedCounts(s.Values, o.Values), mergedSketches(s.Sketch, o.Sketch)
	return s
}

// Fit implements table.Stage. A column without any value is an error, unless it is filled
// with a constant.
func (s *Impute) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	all, err := gather(ctx, flock, s.look(ctx, rows), seen.merge)
	if err != nil {
		return fmt.Errorf("filling in: %w", err)
	}
	s.Learned = make(map[string]Filling, len(all))
	for _, column := range slices.Sorted(maps.Keys(all)) {
		if s.Learned[column], err = s.filling(all[column]); err != nil {
			return fmt.Errorf("filling in: column %q %w", column, err)
		}
	}
	return nil
}

// ErrNoValue: a column that is to be filled in is missing everywhere; the error names it.
var ErrNoValue = errors.New("has no value in any row of any member: leave it out")

// kind is the kind of the columns to fill.
func (s *Impute) kind() table.Kind {
	if s.By == MostFrequent {
		return table.Category
	}
	return table.Number
}

func (s *Impute) check() error {
	if known := []By{"", Mean, Median, Constant, MostFrequent}; !slices.Contains(known, s.By) {
		return fmt.Errorf("By is %q: want one of %q", s.By, known[1:])
	}
	return nil
}

// look goes over this member's rows and learns what filling needs.
func (s *Impute) look(ctx context.Context, rows table.Source) part[seen] {
	p := part[seen]{own: make(map[string]seen), settings: []any{s.Columns, s.By, s.Value, s.Indicator}}
	if p.fault = s.check(); p.fault != nil {
		return p
	}
	p.fault = collect(ctx, rows, s.Columns, s.kind(), func(c *table.Column) {
		of := p.own[c.Name]
		if there := of.Moments.Count; c.Kind == table.Number {
			of.Moments.Add(c.Numbers...)
			of.Missing += float64(len(c.Numbers)) - (of.Moments.Count - there)
		} else {
			var missing float64
			of.Values, missing = table.CountValues(of.Values, c, MaxValues)
			of.Missing += missing
		}
		if s.By == Median {
			if of.Sketch == nil {
				of.Sketch = &Sketch{}
			}
			of.Sketch.Add(c.Numbers...)
		}
		p.own[c.Name] = of
	})
	return p
}

// filling computes the value for a column.
func (s *Impute) filling(of seen) (Filling, error) {
	filling := Filling{Some: of.Missing > 0}
	switch {
	case s.By == Constant:
		filling.Value = s.Value
	case len(of.Values) > MaxValues:
		return filling, errManyValues
	case s.By == MostFrequent && len(of.Values) > 0:
		for i, text := range slices.Sorted(maps.Keys(of.Values)) { // so that an empty text can be the answer
			if i == 0 || of.Values[text] > of.Values[filling.Text] {
				filling.Text = text
			}
		}
	case of.Moments.Count == 0 || s.By == Median && of.Sketch == nil:
		return filling, ErrNoValue
	case s.By == Median:
		filling.Value = of.Sketch.Quantile(0.5)
	default:
		filling.Value = of.Moments.Mean()
	}
	return filling, nil
}

// Transform implements table.Stage.
func (s *Impute) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, s.kind(), s.Learned, func(c *table.Column, of Filling) []table.Column {
		flags := table.Column{Name: c.Name + " is missing", Kind: table.Number, Numbers: make([]float64, b.Rows)}
		full := *c
		full.Numbers, full.Codes = slices.Clone(c.Numbers), slices.Clone(c.Codes)
		for i, x := range c.Numbers {
			if math.IsNaN(x) {
				full.Numbers[i], flags.Numbers[i] = of.Value, 1
			}
		}
		code := slices.Index(c.Values, of.Text)
		if code < 0 && c.Kind == table.Category {
			code, full.Values = len(c.Values), append(slices.Clone(c.Values), of.Text)
		}
		for i, known := range c.Codes {
			if known == table.Missing {
				full.Codes[i], flags.Numbers[i] = int32(code), 1
			}
		}
		if s.Indicator && of.Some {
			return []table.Column{full, flags}
		}
		return []table.Column{full}
	})
}
