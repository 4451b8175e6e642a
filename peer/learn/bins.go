package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// binColumn divides a column into bins, one for each range or category. For categories, one more bin has all others.
// The last bin is always that of missing values.
type binColumn struct {
	name     string
	category bool
	values   []string  // categories with a bin of their own, the most frequent first
	edges    []float64 // of ranges: bin i has the values above edges[i-1] up to edges[i]
	bins     int       // including that of missing values
}

// binOf is the bin of a number.
func (c *binColumn) binOf(x float64) uint8 {
	if missing(x) {
		return uint8(c.bins - 1)
	}
	low, n := 0, len(c.edges)
	for n > 0 { // no branches, which the processor would predict wrong half the time
		half := (n + 1) / 2
		if c.edges[low+half-1] < x {
			low += half
		}
		n -= half
	}
	return uint8(low)
}

// fill appends the bin of each row.
func (c *binColumn) fill(dst []uint8, column *table.Column) []uint8 {
	if !c.category {
		for _, x := range column.Numbers {
			dst = append(dst, c.binOf(x))
		}
		return dst
	}
	place := make(map[string]uint8, len(c.values))
	for i, v := range c.values {
		place[v] = uint8(i)
	}
	bins := make([]uint8, len(column.Values)) // bin of each code
	for i, v := range column.Values {
		bin, known := place[v]
		if !known {
			bin = uint8(len(c.values))
		}
		bins[i] = bin
	}
	for _, code := range column.Codes {
		bin := uint8(len(c.values) + 1)
		if code >= 0 && int(code) < len(bins) {
			bin = bins[code]
		}
		dst = append(dst, bin)
	}
	return dst
}

// binned has this member's rows in bins, and the facts about all rows that all members know.
type binned struct {
	columns  []binColumn
	bins     [][]uint8    // by column, then row
	keys     *table.Batch // has the rows' keys
	rows     int
	all      int64   // rows of all members
	weighted bool    // the rows of some member have weights
	weight   float64 // the largest weight of a row at any member
	target   float64 // the largest absolute target at any member
}

// allColumns appends all columns.
func (b *binned) allColumns(dst []int32) []int32 {
	for c := range b.columns {
		dst = append(dst, int32(c))
	}
	return dst
}

// columnSummary is what members send each other about a column.
type columnSummary struct {
	Rows   int64    `json:"rows"`            // rows with a value
	Least  uint64   `json:"least,omitempty"` // keys of the least and the largest number
	Most   uint64   `json:"most,omitempty"`
	Zeros  uint     `json:"zeros,omitempty"` // how many low bits are 0 in all numbers
	Values []string `json:"values,omitempty"`
	Counts []int64  `json:"counts,omitempty"`
}

// rowsSummary is what members send each other about their rows.
type rowsSummary struct {
	Rows     int64           `json:"rows"`
	Weighted bool            `json:"weighted"`
	Weight   float64         `json:"weight"`
	Target   float64         `json:"target"`
	Columns  []columnSummary `json:"columns"`
}

// maxNames bounds the distinct values of a column that one member sends; rarer values count as others.
const maxNames = 1 << 16

// maxTreeRows bounds the rows of all members, so that the sum of their weights fits in a cell.
const maxTreeRows = 1 << 30

// check makes sure that a member's summary is consistent: its counts decide the lengths and the bits of sums.
func (s *rowsSummary) check(columns int) error {
	if len(s.Columns) != columns {
		return table.ErrUnlike
	}
	sound := s.Rows >= 0 && s.Rows <= maxTreeRows && s.Weight >= 0 && s.Weight <= maxNumber && s.Target >= 0 && s.Target <= maxNumber
	for _, c := range s.Columns {
		sound = sound && c.Rows >= 0 && c.Rows <= s.Rows && len(c.Counts) == len(c.Values) && len(c.Values) <= maxNames &&
			!slices.ContainsFunc(c.Counts, func(n int64) bool { return n < 0 || n > c.Rows })
	}
	if !sound {
		return fmt.Errorf("%w: the counts of its columns or values contradict its %d rows", table.ErrSum, s.Rows)
	}
	return nil
}

// binRows agrees on the bins with all members, and puts the rows into them. settings are those of the learner, which
// must be the same at all members.
func binRows(ctx context.Context, flock table.Flock, rows Rows, settings any) (*binned, error) {
	local := cmp.Or(checkTarget(rows), checkColumns(rows.Features))
	type kind struct {
		Name string
		Kind table.Kind
	}
	var kinds []kind
	if rows.Features != nil {
		for _, c := range rows.Features.Columns {
			kinds = append(kinds, kind{c.Name, c.Kind})
		}
	}
	if err := agree(ctx, flock, local, settings, rows.Classes, kinds); err != nil {
		return nil, err
	}
	all, err := summarize(ctx, flock, rows)
	if err != nil {
		return nil, err
	}
	if all.Rows == 0 || all.Weight == 0 {
		return nil, ErrNoRows
	}
	edges, err := findEdges(ctx, flock, rows.Features, all)
	if err != nil {
		return nil, err
	}
	b := &binned{keys: rows.Features, rows: rows.Features.Rows, all: all.Rows, weighted: all.Weighted, weight: all.Weight, target: all.Target}
	for i, k := range kinds {
		c := binColumn{name: k.Name, edges: edges[i], category: k.Kind == table.Category}
		c.bins = len(c.edges) + 2
		if c.category {
			c.values = all.Columns[i].Values
			c.bins = len(c.values) + 2
		}
		b.bins = append(b.bins, c.fill(make([]uint8, 0, b.rows), &rows.Features.Columns[i]))
		b.columns = append(b.columns, c)
	}
	return b, nil
}

func checkColumns(b *table.Batch) error {
	if b == nil || len(b.Columns) == 0 {
		return errNoFeatures
	}
	for i := range b.Columns {
		c := &b.Columns[i]
		n := len(c.Numbers)
		if c.Kind == table.Category {
			n = len(c.Codes)
		}
		if n != b.Rows {
			return fmt.Errorf("learn: column %q has %d values for %d rows", c.Name, n, b.Rows)
		}
	}
	return table.DistinctNames(b.Names())
}

// summarize sends a summary of this member's rows to all members, and combines all summaries.
func summarize(ctx context.Context, flock table.Flock, rows Rows) (rowsSummary, error) {
	mine := rowsSummary{Rows: int64(rows.Features.Rows), Weighted: rows.Weight != nil}
	for i := range rows.Features.Rows {
		mine.Weight = max(mine.Weight, rows.weight(i))
		mine.Target = max(mine.Target, math.Abs(rows.Target[i]))
	}
	for i := range rows.Features.Columns {
		mine.Columns = append(mine.Columns, summarizeColumn(&rows.Features.Columns[i]))
	}
	summaries, err := table.GatherJSON(ctx, flock, "columns", mine)
	if err != nil {
		return mine, fmt.Errorf("learn: gathering what the columns of all members hold: %w", err)
	}
	all := rowsSummary{Columns: make([]columnSummary, len(mine.Columns))}
	counts := make([]map[string]int64, len(mine.Columns))
	for i := range counts {
		all.Columns[i].Zeros, counts[i] = 63, map[string]int64{}
	}
	for _, s := range summaries {
		err := s.check(len(mine.Columns))
		if all.Rows += s.Rows; err == nil && all.Rows > maxTreeRows {
			err = fmt.Errorf("all have more than %d rows", maxTreeRows)
		}
		if err != nil {
			return all, fmt.Errorf("learn: reading what a member's columns hold: %w", err)
		}
		all.Weighted = all.Weighted || s.Weighted
		all.Weight, all.Target = max(all.Weight, s.Weight), max(all.Target, s.Target)
		for i, c := range s.Columns {
			all.Columns[i].join(c, counts[i])
		}
	}
	for i := range all.Columns {
		all.Columns[i].name(counts[i], maxBins-1)
	}
	return all, nil
}

func summarizeColumn(column *table.Column) columnSummary {
	s := columnSummary{Zeros: 63}
	if column.Kind == table.Category {
		counts, missing := table.CountValues[int64](nil, column, len(column.Values))
		s.Rows = int64(len(column.Codes)) - missing
		s.name(counts, maxNames)
		return s
	}
	for _, x := range column.Numbers {
		if missing(x) {
			continue
		}
		key := keyOf(x)
		if s.Rows == 0 {
			s.Least, s.Most = key, key
		}
		s.Rows++
		s.Least, s.Most = min(s.Least, key), max(s.Most, key)
		if x != 0 {
			s.Zeros = min(s.Zeros, uint(bits.TrailingZeros64(math.Float64bits(x))))
		}
	}
	return s
}

// join adds the summary of one more member.
func (s *columnSummary) join(o columnSummary, counts map[string]int64) {
	for i, value := range o.Values {
		counts[value] += o.Counts[i]
	}
	if o.Rows == 0 {
		return
	}
	if s.Rows == 0 {
		s.Least, s.Most = o.Least, o.Most
	}
	s.Rows += o.Rows
	s.Least, s.Most, s.Zeros = min(s.Least, o.Least), max(s.Most, o.Most), min(s.Zeros, o.Zeros)
}

// name keeps the most frequent values, at most most of them.
func (s *columnSummary) name(counts map[string]int64, most int) {
	s.Values, s.Counts = nil, nil
	for value, n := range counts {
		if n > 0 {
			s.Values = append(s.Values, value)
		}
	}
	slices.SortFunc(s.Values, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	s.Values = s.Values[:min(len(s.Values), most)]
	for _, value := range s.Values {
		s.Counts = append(s.Counts, counts[value])
	}
}
