package prepare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// part is what one member has learned of its own rows, by column.
type part[T any] struct {
	own map[string]T
	// fault is why it could not: the others are told.
	fault error
	// settings are those of the stage, which all have alike.
	settings []any
}

// gather merges what every member has learned of each column, in the flock's order, so that all
// have the same. A member without rows knows no columns and contributes nothing. An error of one
// member is an error at all, see table.Ready.
func gather[T any](ctx context.Context, flock table.Flock, p part[T], merge func(T, T) T) (map[string]T, error) {
	flock = table.Careful(flock)
	if err := table.Ready(ctx, flock, "ready", cmp.Or(p.fault, checkWritten(p.own)), p.settings...); err != nil {
		return nil, err
	}
	all, err := table.GatherJSON(ctx, flock, "learned", p.own)
	if err != nil {
		return nil, err
	}
	merged := make(map[string]T)
	for _, theirs := range all {
		for _, column := range slices.Sorted(maps.Keys(theirs)) {
			of := theirs[column]
			if before, known := merged[column]; known {
				of = merge(before, of)
			}
			merged[column] = of
		}
	}
	return merged, checkWritten(merged)
}

// checkWritten names the column whose part cannot be written as JSON, since sums or squares of very
// large numbers have become infinite.
func checkWritten[T any](learned map[string]T) error {
	for _, column := range slices.Sorted(maps.Keys(learned)) {
		if _, err := json.Marshal(learned[column]); err != nil {
			return fmt.Errorf("column %q has numbers that are %w", column, table.ErrNumbers)
		}
	}
	return nil
}

// collect goes over the columns of a stage, batch by batch: the named ones, or all of a kind. Infinite numbers are an error,
// and so is a named column that is absent or of another kind; the error names all of them.
func collect(ctx context.Context, rows table.Source, names []string, kind table.Kind, do func(c *table.Column)) error {
	return each(ctx, rows, func(b *table.Batch) error {
		var faults []error
		for i, name := range names {
			_, err := find(b, name, kind, i)
			faults = append(faults, err)
		}
		return errors.Join(faults...)
	}, func(c *table.Column) bool {
		return c.Kind == kind && (len(names) == 0 || slices.Contains(names, c.Name))
	}, do)
}

// each goes over the wanted columns, batch by batch, and calls begin before for each batch.
func each(ctx context.Context, rows table.Source, begin func(b *table.Batch) error, wanted func(c *table.Column) bool, do func(c *table.Column)) error {
	for b, err := range rows(ctx) {
		if err == nil {
			err = begin(b)
		}
		if err != nil {
			return err
		}
		for i := range b.Columns {
			c := &b.Columns[i]
			if !wanted(c) {
				continue
			}
			if at := slices.IndexFunc(c.Numbers, func(x float64) bool { return math.IsInf(x, 0) }); at >= 0 {
				return fmt.Errorf("column %q is %g in row %d, %w", c.Name, c.Numbers[at], b.Key(at), table.ErrNumbers)
			}
			do(c)
		}
	}
	return nil
}

// first is the first batch of a source.
func first(rows table.Source) table.Source {
	return func(ctx context.Context) iter.Seq2[*table.Batch, error] {
		return func(yield func(*table.Batch, error) bool) {
			for b, err := range rows(ctx) {
				yield(b, err)
				return
			}
		}
	}
}

// find finds a column by name and kind; it looks first near a place.
func find(b *table.Batch, name string, kind table.Kind, near int) (*table.Column, error) {
	c := b.FindNear(name, near)
	if c == nil {
		return nil, fmt.Errorf("column %q is not there", name)
	}
	if c.Kind != kind {
		return nil, fmt.Errorf("column %q is a %s, not a %s", name, c.Kind, kind)
	}
	return c, nil
}

// replaced is b with each column in learned replaced by the columns that make returns for it.
func replaced[T any](b *table.Batch, kind table.Kind, learned map[string]T, make func(c *table.Column, of T) []table.Column) (*table.Batch, error) {
	out := &table.Batch{Rows: b.Rows, First: b.First, Keys: b.Keys}
	var made []string // by column of out, the column that it was made of
	known := 0
	for i := range b.Columns {
		c := &b.Columns[i]
		columns := []table.Column{*c}
		if of, ok := learned[c.Name]; ok && c.Kind == kind {
			known++
			columns = make(c, of)
		}
		for _, n := range columns {
			out.Columns, made = append(out.Columns, n), append(made, c.Name)
		}
	}
	if known != len(learned) { // otherwise none is absent, and a search for each would be slow with many
		for _, name := range slices.Sorted(maps.Keys(learned)) {
			if _, err := find(b, name, kind, 0); err != nil {
				return nil, err
			}
		}
	}
	tellApart(out, made)
	return out, nil
}

// tellApart quotes the column in names such as "COLUMN=VALUE" if another column has the same name, so that value "c" of
// column "a=b" and value "b=c" of column "a" get different names, and so does a column that already has such a name.
func tellApart(b *table.Batch, made []string) {
	times := make(map[string]int, len(b.Columns))
	for _, name := range b.Names() {
		times[name]++
	}
	for i := range b.Columns {
		if c := &b.Columns[i]; c.Name != made[i] && times[c.Name] > 1 {
			c.Name = strconv.Quote(made[i]) + c.Name[len(made[i]):]
		}
	}
}

// mapped is a column of numbers with do applied to each number that is not missing.
func mapped(c *table.Column, do func(float64) float64) []table.Column {
	out := table.Column{Name: c.Name, Kind: table.Number, Numbers: make([]float64, len(c.Numbers))}
	for i, x := range c.Numbers {
		if !math.IsNaN(x) {
			x = do(x)
		}
		out.Numbers[i] = x
	}
	return []table.Column{out}
}
