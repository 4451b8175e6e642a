package prepare

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// MaxValues is the most distinct values of a column that members agree on; a column with
// more needs Buckets.
const MaxValues = 1 << 16

// Other stands for values with too few rows, and for values that no member had in fitting.
const Other = "other"

// values counts the values of columns over all members, and keeps those of floor rows or more,
// sorted.
func values(ctx context.Context, flock table.Flock, rows table.Source, columns []string, floor float64) (map[string][]string, error) {
	own := make(map[string]map[string]float64)
	p := part[map[string]float64]{own: own, settings: []any{columns, floor}}
	if !(floor >= 0) || math.IsInf(floor, 1) {
		p.fault = fmt.Errorf("Floor is %g: want a number of rows", floor)
	} else {
		p.fault = collect(ctx, rows, columns, table.Category, func(c *table.Column) { own[c.Name], _ = table.CountValues(own[c.Name], c, MaxValues) })
	}
	all, err := gather(ctx, flock, p, mergedCounts)
	if err != nil {
		return nil, err
	}
	kept := make(map[string][]string, len(all))
	for column, counts := range all {
		if len(counts) > MaxValues {
			return nil, fmt.Errorf("column %q %w", column, errManyValues)
		}
		kept[column] = []string{}
		for _, value := range slices.Sorted(maps.Keys(counts)) {
			if counts[value] >= floor && value != Other { // a value called Other is counted with the rare ones
				kept[column] = append(kept[column], value)
			}
		}
	}
	return kept, nil
}

// errManyValues says that a column has more than MaxValues.
var errManyValues = fmt.Errorf("has more than %d values: drop it, or make it buckets", MaxValues)

// mergedCounts adds the counts of a and b. It stops at one value more than MaxValues.
func mergedCounts(a, b map[string]float64) map[string]float64 {
	if a == nil {
		return b
	}
	for value, n := range b {
		if len(a) <= MaxValues {
			a[value] += n
		}
	}
	return a
}

// dictionary lists, by column, the values that have a code of their own, with an index to find the code.
type dictionary struct {
	lists  map[string][]string
	places map[string]map[string]int32
}

func (d *dictionary) set(lists map[string][]string) {
	d.lists, d.places = lists, make(map[string]map[string]int32, len(lists))
	for column, list := range lists {
		places := make(map[string]int32, len(list))
		for i, value := range list {
			places[value] = int32(i)
		}
		d.places[column] = places
	}
}

// MarshalJSON writes the values.
func (d dictionary) MarshalJSON() ([]byte, error) { return json.Marshal(d.lists) }

// UnmarshalJSON reads them.
func (d *dictionary) UnmarshalJSON(data []byte) error {
	var lists map[string][]string
	if err := json.Unmarshal(data, &lists); err != nil {
		return err
	}
	d.set(lists)
	return nil
}

// coded translates a column into the dictionary's codes: a value that is not listed gets
// the code after the last, and a missing one stays missing.
func (d *dictionary) coded(c *table.Column) []int32 {
	places, other := d.places[c.Name], int32(len(d.lists[c.Name]))
	of := make([]int32, len(c.Values))
	for i, value := range c.Values {
		of[i] = other
		if place, ok := places[value]; ok {
			of[i] = place
		}
	}
	codes := make([]int32, len(c.Codes))
	for i, code := range c.Codes {
		if codes[i] = table.Missing; code != table.Missing {
			codes[i] = of[code]
		}
	}
	return codes
}

// OneHot replaces each column of categories by columns of 0 and 1, one for each value,
// "COLUMN=VALUE", and one for all others, "COLUMN=other". A value that is missing is 0 in all.
// Where another column has that name, COLUMN is quoted.
type OneHot struct {
	// Columns are those that are taken apart; none are all categories.
	Columns []string `json:"columns,omitempty"`
	// Floor is how many rows of all members a value must have for a column of its own.
	Floor float64 `json:"floor,omitempty"`
	// Learned is what Fit finds.
	Learned dictionary `json:"learned"`
}

// Fit implements table.Stage.
func (s *OneHot) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	kept, err := values(ctx, flock, rows, s.Columns, s.Floor)
	if err != nil {
		return fmt.Errorf("taking categories apart: %w", err)
	}
	s.Learned.set(kept)
	return s.check()
}

func (s *OneHot) check() error {
	columns := 0
	for _, list := range s.Learned.lists {
		columns += len(list) + 1
	}
	return checkMade(columns)
}

// Transform implements table.Stage.
func (s *OneHot) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Learned.lists, func(c *table.Column, list []string) []table.Column {
		names := append(slices.Clone(list), Other)
		columns := make([]table.Column, len(names))
		for i, value := range names {
			columns[i] = table.Column{Name: c.Name + "=" + value, Kind: table.Number, Numbers: make([]float64, len(c.Codes))}
		}
		for row, code := range s.Learned.coded(c) {
			if code != table.Missing {
				columns[code].Numbers[row] = 1
			}
		}
		return columns
	})
}

// Codes gives each value of a category the same number at all members, for learners that
// split by category: the numbered Values are those with Floor rows or more, and then Other.
type Codes struct {
	// Columns are those that are numbered; none are all categories.
	Columns []string `json:"columns,omitempty"`
	// Floor is how many rows of all members a value must have for a code of its own.
	Floor float64 `json:"floor,omitempty"`
	// Learned is what Fit finds.
	Learned dictionary `json:"learned"`
}

// Fit implements table.Stage.
func (s *Codes) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	kept, err := values(ctx, flock, rows, s.Columns, s.Floor)
	if err != nil {
		return fmt.Errorf("numbering categories: %w", err)
	}
	s.Learned.set(kept)
	return nil
}

// Transform implements table.Stage.
func (s *Codes) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Learned.lists, func(c *table.Column, list []string) []table.Column {
		return []table.Column{{Name: c.Name, Kind: table.Category, Codes: s.Learned.coded(c), Values: append(slices.Clone(list), Other)}}
	})
}

// Buckets replaces each column of categories by a number of columns of 0 and 1, chosen by a hash of the
// value: members need not agree on values, and values may share a column (Weinberger et al., 2009).
type Buckets struct {
	// Columns are those that are hashed; none are all categories.
	Columns []string `json:"columns,omitempty"`
	// Count is how many columns each becomes. Default: 64.
	Count int `json:"count,omitempty"`
	// Learned are the columns there are.
	Learned map[string]bool `json:"learned,omitempty"`
}

const (
	defaultBuckets = 64
	maxBuckets     = 1 << 14
)

// bucketsOf sets and checks how many columns each of the given columns becomes.
func bucketsOf(count *int, columns int) error {
	if *count = cmp.Or(*count, defaultBuckets); *count < 2 || *count > maxBuckets {
		return fmt.Errorf("buckets: Count is %d: want 2 to %d, or 0 for %d", *count, maxBuckets, defaultBuckets)
	}
	return checkMade(*count * columns)
}

// bucket is the number of the column into which a text goes.
func bucket(text string, count int) int {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int(h.Sum64() % uint64(count))
}

// placed is the value of a text in one of the columns that replace it.
type placed struct {
	column int
	share  float64
}

// hashed makes count columns, COLUMN#0 and so on, with the values that of returns for each text.
func hashed(c *table.Column, count int, of func(text string) []placed) []table.Column {
	columns := make([]table.Column, count)
	for i := range columns {
		columns[i] = table.Column{Name: c.Name + "#" + strconv.Itoa(i), Kind: table.Number, Numbers: make([]float64, len(c.Codes))}
	}
	known := make([][]placed, len(c.Values))
	for row, code := range c.Codes {
		if code == table.Missing {
			continue
		}
		if known[code] == nil {
			known[code] = of(c.Values[code])
		}
		for _, p := range known[code] {
			columns[p.column].Numbers[row] = p.share
		}
	}
	return columns
}

// Fit implements table.Stage.
func (s *Buckets) Fit(ctx context.Context, flock table.Flock, rows table.Source) (err error) {
	s.Learned = nil
	if s.Learned, err = columnsOf(ctx, flock, rows, s.Columns, table.Category, s.check(), s.Count); err != nil {
		return err
	}
	return s.check()
}

// columnsOf are the columns of a kind that any member has: the first batch shows them,
// since all batches of a source have the same columns. fault is an error of the settings.
func columnsOf(ctx context.Context, flock table.Flock, rows table.Source, columns []string, kind table.Kind, fault error, settings ...any) (map[string]bool, error) {
	own := make(map[string]bool)
	if fault == nil {
		fault = collect(ctx, first(rows), columns, kind, func(c *table.Column) { own[c.Name] = true })
	}
	return gather(ctx, flock, part[bool]{own, fault, append(settings, columns)}, func(a, _ bool) bool { return a })
}

// Transform implements table.Stage.
func (s *Buckets) Transform(b *table.Batch) (*table.Batch, error) {
	return replaced(b, table.Category, s.Learned, func(c *table.Column, _ bool) []table.Column {
		return hashed(c, s.Count, func(text string) []placed { return []placed{{bucket(text, s.Count), 1}} })
	})
}
