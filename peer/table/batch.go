package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Kind is the kind of the values of a column.
type Kind uint8

const (
	// Number is a float64; NaN is missing.
	Number Kind = iota
	// Category is one of a column's Values, or a text.
	Category
)

// kindNames are the kinds as text, by Kind.
var kindNames = [...]string{Number: "number", Category: "category"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText writes "number" or "category".
func (k Kind) MarshalText() ([]byte, error) {
	if int(k) >= len(kindNames) {
		return nil, fmt.Errorf("no such kind of column: %d", uint8(k))
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText reads what MarshalText writes.
func (k *Kind) UnmarshalText(text []byte) error {
	at := slices.Index(kindNames[:], string(text))
	if at < 0 {
		return fmt.Errorf("no such kind of column: %q (number or category)", text)
	}
	*k = Kind(at)
	return nil
}

// Column is one column of some rows. Do not change a column that you are given.
type Column struct {
	Name string
	Kind Kind
	// Numbers has a value for each row, if the column is of Numbers.
	Numbers []float64
	// Codes has, for each row, the index of its value in Values, or Missing, if the column
	// is of Categories.
	Codes []int32
	// Values are the distinct values to which Codes refer; some may be in no row of this
	// batch. Batches of one Source may number the same values differently; the batches of a
	// fitted stage number them alike.
	Values []string
}

// asCategory is a column of numbers as one of categories, of their texts.
func (c *Column) asCategory() *Column {
	out := &Column{Name: c.Name, Kind: Category, Codes: make([]int32, len(c.Numbers))}
	codes := map[float64]int32{}
	for row, v := range c.Numbers {
		code, ok := codes[v]
		if math.IsNaN(v) {
			code = Missing
		} else if !ok {
			code = int32(len(out.Values))
			codes[v] = code
			out.Values = append(out.Values, strconv.FormatFloat(v+0, 'g', -1, 64)) // -0 is 0
		}
		out.Codes[row] = code
	}
	return out
}

// Uses counts the rows of each of the column's Values, and the rows without a value.
func (c *Column) Uses() (rows []int64, missing int64) {
	rows = make([]int64, len(c.Values))
	for _, code := range c.Codes {
		if code < 0 || int(code) >= len(rows) {
			missing++
		} else {
			rows[code]++
		}
	}
	return rows, missing
}

// CountValues adds a column's rows to the count of each value, and stops once there are more values than
// most. missing is the number of rows without a value.
func CountValues[T int64 | float64](counts map[string]T, c *Column, most int) (all map[string]T, missing T) {
	if counts == nil {
		counts = make(map[string]T)
	}
	rows, none := c.Uses()
	for i, n := range rows {
		if n > 0 && len(counts) <= most {
			counts[c.Values[i]] += T(n)
		}
	}
	return counts, T(none)
}

// Missing is the code of a missing category.
const Missing int32 = -1

// Batch is some rows, in columns of equal length.
type Batch struct {
	Columns []Column
	Rows    int
	// First is the number of the first row in its source, from 0; rows of a batch follow one
	// another unless Keys says each.
	First int64
	// Keys has the number of each row in its source if rows were left out; nil if they
	// follow First.
	Keys []int64
}

// Key is the number of a row in its source.
func (b *Batch) Key(row int) int64 {
	if b.Keys != nil {
		return b.Keys[row]
	}
	return b.First + int64(row)
}

// Find is the column with a name, nil if there is none.
func (b *Batch) Find(name string) *Column {
	for i := range b.Columns {
		if b.Columns[i].Name == name {
			return &b.Columns[i]
		}
	}
	return nil
}

// FindNear is Find for a caller that goes over columns in their order: it looks at this place first.
func (b *Batch) FindNear(name string, place int) *Column {
	if place < len(b.Columns) && b.Columns[place].Name == name {
		return &b.Columns[place]
	}
	return b.Find(name)
}

// Names are the columns' names; nil for a nil batch.
func (b *Batch) Names() []string {
	if b == nil {
		return nil
	}
	names := make([]string, len(b.Columns))
	for i := range b.Columns {
		names[i] = b.Columns[i].Name
	}
	return names
}

// DistinctNames returns an error that names a column which occurs twice: Find would never find the second.
func DistinctNames(names []string) error {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return fmt.Errorf("two columns are called %q: rename one", name)
		}
		seen[name] = true
	}
	return nil
}

// Pick is a batch of some rows of b, by their indices in ascending order; b itself if these
// are all.
func (b *Batch) Pick(rows []int) *Batch {
	if len(rows) == b.Rows {
		return b
	}
	out := &Batch{Columns: make([]Column, len(b.Columns)), Rows: len(rows), Keys: make([]int64, len(rows))}
	for i, row := range rows {
		out.Keys[i] = b.Key(row)
	}
	if len(rows) > 0 {
		out.First = out.Keys[0]
	}
	for c := range b.Columns {
		from, to := &b.Columns[c], &out.Columns[c]
		*to = *from
		to.Numbers, to.Codes = PickOf(from.Numbers, rows), PickOf(from.Codes, rows)
	}
	return out
}

// PickOf are the values of some rows; nil stays nil.
func PickOf[T any](values []T, rows []int) []T {
	if values == nil {
		return nil
	}
	picked := make([]T, len(rows))
	for i, row := range rows {
		picked[i] = values[row]
	}
	return picked
}

// Keep is b with only the rows for which keep returns true.
func (b *Batch) Keep(keep func(row int) bool) *Batch {
	rows := make([]int, 0, b.Rows)
	for row := range b.Rows {
		if keep(row) {
			rows = append(rows, row)
		}
	}
	return b.Pick(rows)
}
