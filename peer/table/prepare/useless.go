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

// DropUseless leaves out columns that by themselves explain too little of a target: a column of
// numbers whose squared correlation with the target is below Tolerance, or categories whose
// values explain a share of the target's variance below it. A missing category counts as a
// value; a missing number is ignored. The target, a column of numbers, stays.
type DropUseless struct {
	// Target is a column; "" is the target of the Plan, classes of which count by their places.
	Target    string  `json:"target"`
	Tolerance float64 `json:"tolerance,omitempty"` // Default: 0, which leaves constant columns out
	// Dropped are the columns that are left out, and what share each explains.
	Dropped map[string]float64 `json:"dropped,omitempty"`
}

// effect is what members sum for a column. For numbers: the moments of the column and of the
// target over rows that have both, and the sum of products of their distances from the means. For
// a category: the target's moments by value.
type effect struct {
	Target  Moments            `json:"target"`
	Number  Moments            `json:"number"`
	Product float64            `json:"product"`
	Values  map[string]Moments `json:"values,omitempty"`
}

func (e effect) merge(o effect) effect {
	if n, m := e.Number.Count, o.Number.Count; n > 0 && m > 0 {
		x := (o.Number.Near - e.Number.Near) + (o.Number.Off - e.Number.Off)
		y := (o.Target.Near - e.Target.Near) + (o.Target.Off - e.Target.Off)
		e.Product += o.Product + x*y*(n*(m/(n+m)))
	} else {
		e.Product += o.Product
	}
	e.Target.Merge(o.Target)
	e.Number.Merge(o.Number)
	if len(e.Values)+len(o.Values) > 0 && e.Values == nil {
		e.Values = make(map[string]Moments)
	}
	for _, value := range slices.Sorted(maps.Keys(o.Values)) {
		if len(e.Values) > MaxValues {
			break // another check reports it
		}
		m := e.Values[value]
		m.Merge(o.Values[value])
		e.Values[value] = m
	}
	return e
}

// explained is the share of the target's variance that the column explains.
func (e effect) explained() float64 {
	whole := e.Target.Squares
	if whole <= 0 {
		return 0
	}
	if e.Values != nil {
		within := 0.0
		for _, value := range slices.Sorted(maps.Keys(e.Values)) {
			within += max(e.Values[value].Squares, 0)
		}
		return max(1-within/whole, 0)
	}
	if e.Number.Squares <= 0 {
		return 0
	}
	return e.Product * e.Product / (e.Number.Squares * whole)
}

// Fit implements table.Stage.
func (s *DropUseless) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	all, err := gather(ctx, flock, s.look(ctx, rows), effect.merge)
	if err != nil {
		return fmt.Errorf("dropping columns without effect: %w", err)
	}
	s.Dropped = make(map[string]float64)
	for _, column := range slices.Sorted(maps.Keys(all)) {
		e := all[column]
		if len(e.Values) > MaxValues {
			return fmt.Errorf("dropping columns without effect: column %q %w", column, errManyValues)
		}
		if share := e.explained(); share <= s.Tolerance {
			s.Dropped[column] = share
		}
	}
	return nil
}

func (s *DropUseless) check() error {
	if !(s.Tolerance >= 0 && s.Tolerance < 1) {
		return fmt.Errorf("Tolerance is %g: want 0 or more, below 1", s.Tolerance)
	}
	return nil
}

// look computes the effects over this member's rows.
func (s *DropUseless) look(ctx context.Context, rows table.Source) part[effect] {
	p := part[effect]{own: make(map[string]effect), settings: []any{s.Target, s.Tolerance}}
	if p.fault = s.check(); p.fault != nil {
		return p
	}
	var target *table.Column
	p.fault = each(ctx, rows, func(b *table.Batch) (err error) {
		if s.Target == "" {
			if target = b.Find(targetColumn); target == nil {
				err = errors.New("there is none to explain")
			}
		} else if target, err = find(b, s.Target, table.Number, 0); err != nil {
			err = fmt.Errorf("the target: %w", err)
		}
		return err
	}, func(*table.Column) bool { return true }, func(c *table.Column) {
		if c.Name != target.Name {
			p.own[c.Name] = p.own[c.Name].merge(effectOf(c, target.Numbers))
		}
	})
	return p
}

// effectOf is the effect of a column in one batch.
func effectOf(c *table.Column, target []float64) (e effect) {
	if c.Kind == table.Category {
		e.Values = make(map[string]Moments)
		by := make([]Moments, len(c.Values)+1)
		for row, code := range c.Codes {
			by[code+1].Add(target[row]) // index 0 is for missing values
		}
		for i, m := range by {
			if m.Count > 0 && i == 0 {
				e.Values["\x00missing"] = m
			} else if m.Count > 0 {
				e.Values[c.Values[i-1]] = m
			}
		}
		e.Target.Add(target...)
		return e
	}
	var numbers, targets []float64
	for row, x := range c.Numbers {
		if y := target[row]; !math.IsNaN(x) && !math.IsNaN(y) {
			numbers, targets = append(numbers, x), append(targets, y)
		}
	}
	e.Number.Add(numbers...)
	e.Target.Add(targets...)
	for i, x := range numbers {
		e.Product += ((x - e.Number.Near) - e.Number.Off) * ((targets[i] - e.Target.Near) - e.Target.Off)
	}
	return e
}

// Transform implements table.Stage.
func (s *DropUseless) Transform(b *table.Batch) (*table.Batch, error) {
	out := *b
	out.Columns = slices.DeleteFunc(slices.Clone(b.Columns), func(c table.Column) bool { _, dropped := s.Dropped[c.Name]; return dropped })
	return &out, nil
}
