// Package prepare makes of the columns of a table what learners can use: what fit does before
// it fits, and predict before it predicts.
package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// For says what a learner can use.
type For string

const (
	// Numbers: what is missing is the mean, with a column that tells so; columns have mean 0
	// and variance 1; categories are columns of 0 and 1.
	Numbers For = "numbers"
	// Counts: as Numbers, but from 0 to 1.
	Counts For = "counts"
	// Trees: numbers and what is missing stay as they are, and so do categories.
	Trees For = "trees"
)

// Stage is all that is done, fitted by sums: a table.Stage. It is written and read by
// encoding/json.
type Stage struct {
	For     For       `json:"for"`
	Floor   float64   `json:"floor"` // values of categories with fewer rows count as one
	Columns []*column `json:"columns"`
}

// column is what was learned of one.
type column struct {
	table.Field
	// Numbers become (x - From - Rest) / Scale: the mean of large numbers that hardly differ has
	// more digits than one float64. Some says that values are missing, in training.
	From  float64 `json:"from,omitempty"`
	Rest  float64 `json:"rest,omitempty"`
	Scale float64 `json:"scale,omitempty"`
	Some  bool    `json:"some_missing,omitempty"`
	Mean  float64 `json:"mean,omitempty"`
	// Values of a category that have a place of their own; the others share one.
	Values []string `json:"values,omitempty"`

	places map[string]int
}

// New prepares columns, as a batch has them.
func New(for_ For, floor float64, columns *table.Batch) *Stage {
	s := &Stage{For: for_, Floor: floor}
	for _, c := range columns.Columns {
		s.Columns = append(s.Columns, &column{Field: table.Field{Name: c.Name, Kind: c.Kind}})
	}
	return s
}

// Fit implements table.Stage.
func (s *Stage) Fit(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	if err := s.fitCategories(ctx, flock, name+"/categories", rows); err != nil {
		return fmt.Errorf("preparing categories: %w", err)
	}
	if s.For == Trees {
		return nil
	}
	if err := s.fitNumbers(ctx, flock, name, rows); err != nil {
		return fmt.Errorf("preparing numbers: %w", err)
	}
	return nil
}

// What is summed of a column of numbers.
const (
	ofRows = iota
	ofMissing
	ofValues
	ofSquares
	sums
)

func (s *Stage) fitNumbers(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	ends := make([]float64, 2*len(s.Columns)) // the largest, and the least negated
	for i := range ends {
		ends[i] = -math.MaxFloat64
	}
	for pass, part := range []string{"/means", "/variances"} { // squares are measured from the mean
		sum := make([]float64, sums*len(s.Columns))
		err := s.each(ctx, rows, func(i int, c *table.Column) {
			of := sum[i*sums : (i+1)*sums]
			for _, x := range c.Numbers {
				of[ofRows]++
				if math.IsNaN(x) {
					of[ofMissing]++
					continue
				}
				off := x - s.Columns[i].Mean
				of[ofValues] += off
				of[ofSquares] += off * off
				ends[2*i], ends[2*i+1] = max(ends[2*i], x), max(ends[2*i+1], -x)
			}
		})
		if err != nil {
			return err
		}
		if sum, _, err = flock.Sum(ctx, name+part, sum); err != nil {
			return err
		}
		for i, c := range s.Columns {
			of := sum[i*sums : (i+1)*sums]
			there := of[ofRows] - of[ofMissing]
			switch {
			case c.Kind != table.Number || of[ofRows] == 0:
				continue
			case there == 0:
				return fmt.Errorf("column %q has no value in any row: leave it out", c.Name)
			}
			off := of[ofValues] / there
			if pass == 0 {
				c.Mean, c.Some = off, of[ofMissing] > 0
				continue
			}
			// What is missing counts as the mean.
			c.From, c.Rest, c.Scale = c.Mean, off, math.Sqrt(max(of[ofSquares]/of[ofRows]-off*off*there/of[ofRows], 0))
			c.Mean += off
		}
	}
	ends, _, err := flock.Max(ctx, name+"/ends", ends)
	if err != nil {
		return err
	}
	for i, c := range s.Columns {
		largest, least := ends[2*i], -ends[2*i+1]
		switch {
		case c.Kind != table.Number:
		case largest == least: // its variance may be rounding
			c.Scale = 0
		case s.For == Counts:
			c.From, c.Rest, c.Scale = least, 0, largest-least
		}
	}
	return nil
}

// fitCategories counts the values.
func (s *Stage) fitCategories(ctx context.Context, flock table.Flock, name string, rows table.Source) error {
	counts := make([]map[string]float64, len(s.Columns))
	for i := range counts {
		counts[i] = map[string]float64{}
	}
	err := s.each(ctx, rows, func(i int, c *table.Column) {
		of := make([]float64, len(c.Values))
		for _, code := range c.Codes {
			if code != table.Missing {
				of[code]++
			}
		}
		for code, n := range of {
			if n > 0 {
				counts[i][c.Values[code]] += n
			}
		}
	})
	if err != nil {
		return err
	}
	data, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	all, err := flock.Gather(ctx, name, data)
	if err != nil {
		return err
	}
	total := make([]map[string]float64, len(s.Columns))
	for _, data := range all {
		var theirs []map[string]float64
		if err := json.Unmarshal(data, &theirs); err != nil || len(theirs) != len(total) {
			return fmt.Errorf("a member has counted values of %d columns, not of %d (%w)", len(theirs), len(total), err)
		}
		for i, of := range theirs {
			if total[i] == nil {
				total[i] = map[string]float64{}
			}
			for value, n := range of {
				total[i][value] += n
			}
		}
	}
	for i, c := range s.Columns {
		for _, value := range slices.Sorted(maps.Keys(total[i])) {
			if total[i][value] >= s.Floor {
				c.Values = append(c.Values, value)
			}
		}
	}
	s.number()
	return nil
}

// number finds the place of each value.
func (s *Stage) number() {
	for _, c := range s.Columns {
		c.places = make(map[string]int, len(c.Values))
		for place, value := range c.Values {
			c.places[value] = place
		}
	}
}

// UnmarshalJSON reads what encoding/json wrote.
func (s *Stage) UnmarshalJSON(data []byte) error {
	type plain Stage
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if slices.Contains(s.Columns, nil) || !slices.Contains([]For{Numbers, Counts, Trees}, s.For) {
		return fmt.Errorf("no stage: for %q", s.For)
	}
	s.number()
	return nil
}

// each goes over the columns of all batches.
func (s *Stage) each(ctx context.Context, rows table.Source, do func(i int, c *table.Column)) error {
	for b, err := range rows(ctx) {
		if err != nil {
			return err
		}
		for i, c := range s.Columns {
			values, err := find(b, c.Field)
			if err != nil {
				return err
			}
			do(i, values)
		}
	}
	return nil
}

func find(b *table.Batch, f table.Field) (*table.Column, error) {
	c := b.Find(f.Name)
	if c == nil {
		return nil, fmt.Errorf("column %q is not there", f.Name)
	}
	if c.Kind != f.Kind {
		return nil, fmt.Errorf("column %q is a %s, not a %s", f.Name, c.Kind, f.Kind)
	}
	return c, nil
}

// Transform implements table.Stage.
func (s *Stage) Transform(b *table.Batch) (*table.Batch, error) {
	out := &table.Batch{Rows: b.Rows, First: b.First, Keys: b.Keys}
	for _, c := range s.Columns {
		from, err := find(b, c.Field)
		switch {
		case err != nil:
			return nil, err
		case c.Kind == table.Category && s.For == Trees:
			out.Columns = append(out.Columns, c.frequent(from))
		case c.Kind == table.Category:
			out.Columns = append(out.Columns, c.oneHot(from)...)
		case s.For == Trees:
			out.Columns = append(out.Columns, *from)
		default:
			out.Columns = append(out.Columns, c.scaled(from)...)
		}
	}
	return out, nil
}

// other is the value that rare ones count as, and what was not seen.
const other = "(other)"

// codes are the places of the values of another numbering.
func (c *column) codes(from *table.Column) []int32 {
	codes := make([]int32, len(from.Values))
	for i, value := range from.Values {
		place, known := c.places[value]
		if !known {
			place = len(c.Values)
		}
		codes[i] = int32(place)
	}
	return codes
}

func (c *column) frequent(from *table.Column) table.Column {
	to, codes := table.Column{Name: c.Name, Kind: c.Kind, Values: append(slices.Clone(c.Values), other)}, c.codes(from)
	for _, code := range from.Codes {
		if code != table.Missing {
			code = codes[code]
		}
		to.Codes = append(to.Codes, code)
	}
	return to
}

// oneHot has a column for each value, and one for the others; a row without a value is 0 in all.
func (c *column) oneHot(from *table.Column) (to []table.Column) {
	for _, value := range append(slices.Clone(c.Values), other) {
		to = append(to, table.Column{Name: c.Name + "=" + value, Numbers: make([]float64, len(from.Codes))})
	}
	codes := c.codes(from)
	for row, code := range from.Codes {
		if code != table.Missing {
			to[codes[code]].Numbers[row] = 1
		}
	}
	return to
}

func (c *column) scaled(from *table.Column) []table.Column {
	to := []table.Column{{Name: c.Name, Numbers: make([]float64, len(from.Numbers))}}
	if c.Some {
		to = append(to, table.Column{Name: c.Name + " missing", Numbers: make([]float64, len(from.Numbers))})
	}
	for row, x := range from.Numbers {
		missing := math.IsNaN(x)
		if missing && c.Some {
			to[1].Numbers[row] = 1
		}
		switch {
		case c.Scale == 0: // a constant column is 0
		case missing && c.From+c.Rest == c.Mean: // 0, with all digits
		case missing:
			to[0].Numbers[row] = (c.Mean - c.From) / c.Scale
		default:
			to[0].Numbers[row] = (x - c.From - c.Rest) / c.Scale
		}
	}
	return to
}

var _ table.Stage = (*Stage)(nil)
