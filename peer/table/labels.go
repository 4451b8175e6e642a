package table

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Labels gives the target of rows. It is written and read by encoding/json, and safe for
// concurrent use.
type Labels struct {
	Target Target `json:"target"`
	// Classes are the names of the classes, sorted; those of a comparison are its negation
	// and itself ("delay<=15", "delay>15"). Nil if the target is a number.
	Classes []string `json:"classes,omitempty"`
	// Rows and Missing count, over the flock, rows with and without a target.
	Rows    int64 `json:"rows"`
	Missing int64 `json:"missing"`
	// Counts are the rows of each class over the flock.
	Counts []int64 `json:"counts,omitempty"`
}

// Of separates the target from a batch. It returns the other columns of the rows that have a
// target, and the target of each of these rows: a number, or the index of the class in
// Classes. Rows without a target are left out. A class that Fit has not seen is an error.
func (l *Labels) Of(b *Batch) (features *Batch, target []float64, err error) {
	all, err := l.values(b)
	if err != nil {
		return nil, nil, err
	}
	features = b.Keep(func(row int) bool { return !math.IsNaN(all[row]) })
	if features, err = Drop(l.Target.Column)(features); err != nil {
		return nil, nil, err
	}
	if features.Rows == b.Rows {
		return features, all, nil
	}
	return features, slices.DeleteFunc(all, math.IsNaN), nil
}

// values are the target of all rows, NaN where it is missing.
func (l *Labels) values(b *Batch) ([]float64, error) {
	c, err := l.Target.column(b)
	if err != nil {
		return nil, err
	}
	values := make([]float64, b.Rows)
	if c.Kind == Number {
		if l.Target.Op == "" && l.Classes != nil {
			return nil, &TargetError{l.Target, ErrTargetKind, fmt.Sprintf(": %q is a number here, and was a category", c.Name)}
		}
		return values, l.compare(values, c)
	}
	classes, err := l.ofValues(c)
	if err != nil {
		return nil, err
	}
	for row, code := range c.Codes {
		values[row] = math.NaN()
		if code == Missing {
			continue
		}
		if values[row] = classes[code]; classes[code] < 0 {
			return nil, fmt.Errorf("column %q of row %d is %q, a class that was in no row when the classes were agreed on", c.Name, b.Key(row), c.Values[code])
		}
	}
	return values, nil
}

// compare sets the target of a column of numbers.
func (l *Labels) compare(values []float64, c *Column) error {
	if l.Target.Op == "" {
		copy(values, c.Numbers)
		return nil
	}
	limit, err := l.Target.number()
	if err != nil {
		return err
	}
	is := map[string][3]bool{ // whether a number below the limit is what is wanted, one that equals it, one above
		">": {2: true}, ">=": {1: true, 2: true}, "<": {true}, "<=": {true, true}, "=": {1: true}, "!=": {true, false, true},
	}[l.Target.Op]
	for row, v := range c.Numbers {
		switch {
		case math.IsNaN(v):
			values[row] = v
		case is[1+cmp.Compare(v, limit)]:
			values[row] = 1
		}
	}
	return nil
}

// ofValues is the class of each value of a column of categories, -1 for one that is in none.
func (l *Labels) ofValues(c *Column) ([]float64, error) {
	if l.Classes == nil || l.Target.ordered() {
		return nil, &TargetError{l.Target, ErrTargetKind, fmt.Sprintf(": %q is a category here, and was a number", c.Name)}
	}
	classes := make([]float64, len(c.Values))
	for i, value := range c.Values {
		if l.Target.Op != "" {
			if (value == l.Target.Value) == (l.Target.Op == "=") {
				classes[i] = 1
			}
			continue
		}
		at, ok := slices.BinarySearch(l.Classes, value)
		if classes[i] = float64(at); !ok {
			classes[i] = -1
		}
	}
	return classes, nil
}

// count counts this member's rows of each class, and all by "" if the target is a number.
func (l *Labels) count(ctx context.Context, rows Source) (counts map[string]int64, missing int64, err error) {
	counts = map[string]int64{}
	for b, err := range rows(ctx) {
		if err != nil {
			return nil, 0, err
		}
		values, err := l.values(b)
		if err != nil {
			return nil, 0, err
		}
		for _, v := range values {
			switch {
			case math.IsNaN(v):
				missing++
			case l.Classes == nil:
				counts[""]++
			default:
				counts[l.Classes[int(v)]]++
			}
		}
	}
	return counts, missing, nil
}

// counted takes the counts of the whole flock: the missing, then one for each class.
func (l *Labels) counted(sums []float64) (*Labels, error) {
	l.Missing = int64(sums[0])
	present, last := 0, 0
	for i, n := range sums[1:] {
		l.Rows += int64(n)
		if n > 0 {
			present, last = present+1, i
		}
		if l.Classes != nil {
			l.Counts = append(l.Counts, int64(n))
		}
	}
	if l.Rows == 0 {
		return nil, &TargetError{l.Target, ErrNoTarget, fmt.Sprintf(" (column %q is missing in all %d rows of the flock)", l.Target.Column, l.Missing)}
	}
	if l.Classes != nil && present == 1 {
		return nil, &TargetError{l.Target, ErrOneClass, fmt.Sprintf(": %q (all %d rows of the flock that have column %q)", l.Classes[last], l.Rows, l.Target.Column)}
	}
	return l, nil
}
