package table

import (
	"fmt"
	"slices"
)

// Concat is all rows of batches in one, under one numbering of each column's values. Batches
// have the same columns; there must be one at least, for the columns, though it may be of no rows.
func Concat(batches ...*Batch) (*Batch, error) {
	if len(batches) == 0 {
		return nil, fmt.Errorf("putting batches together: there is none")
	}
	all := &Batch{Columns: make([]Column, len(batches[0].Columns)), Keys: []int64{}}
	for _, b := range batches {
		all.Rows += b.Rows
	}
	all.Keys = slices.Grow(all.Keys, all.Rows)
	for _, b := range batches {
		for row := range b.Rows {
			all.Keys = append(all.Keys, b.Key(row))
		}
	}
	for j, first := range batches[0].Columns {
		to := &all.Columns[j]
		*to = Column{Name: first.Name, Kind: first.Kind}
		code := map[string]int32{}
		for _, b := range batches {
			if j >= len(b.Columns) || b.Columns[j].Name != first.Name || b.Columns[j].Kind != first.Kind {
				return nil, fmt.Errorf("putting batches together: column %q is not in all of them", first.Name)
			}
			to.extend(&b.Columns[j], all.Rows, code)
		}
	}
	return all, nil
}

// extend adds the values of another column; code has the place of each value so far.
func (c *Column) extend(by *Column, rows int, code map[string]int32) {
	if c.Kind == Number {
		c.Numbers = append(slices.Grow(c.Numbers, rows-len(c.Numbers)), by.Numbers...)
		return
	}
	codes := make([]int32, len(by.Values))
	for i, value := range by.Values {
		at, known := code[value]
		if !known {
			at = int32(len(c.Values))
			code[value], c.Values = at, append(c.Values, value)
		}
		codes[i] = at
	}
	c.Codes = slices.Grow(c.Codes, rows-len(c.Codes))
	for _, i := range by.Codes {
		if i != Missing {
			i = codes[i]
		}
		c.Codes = append(c.Codes, i)
	}
}
