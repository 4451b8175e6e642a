package summary

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

const (
	buckets = MaxValues
	maxOwn  = 2 * MaxValues // values that a member keeps
	maxName = 256           // bytes of a value that may be shown
)

// category has the sums of a column of categories. Rows are first counted by a hash of the value: a value leaves its
// member only if at least the floor of rows, over all members, have its hash.
type category struct {
	hashed   []float64 // rows by hash
	own      map[string]float64
	distinct float64 // 0: too many
	cells    []Cell  // by value
}

func hashOf(value string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(value))
	return table.Mix(h.Sum64()) % buckets
}

// first counts the rows of a batch, and returns how many have a value.
func (c *category) first(of *table.Column, weights []float64) (present float64) {
	uses := make([]float64, len(of.Values))
	for row, code := range of.Codes {
		if code >= 0 {
			uses[code] += weights[row]
		}
	}
	for i, value := range of.Values {
		if uses[i] > 0 {
			c.hashed[hashOf(value)] += uses[i]
			present += uses[i]
			if _, known := c.own[value]; known || len(value) <= maxName && len(c.own) < maxOwn {
				c.own[value] += uses[i]
			}
		}
	}
	return present
}

// begin estimates the number of distinct values of all members, and returns this member's values that others may see.
func (c *category) begin(least float64) (values []string) {
	empty := 0.0
	for _, rows := range c.hashed {
		if rows == 0 {
			empty++
		}
	}
	d := math.Round(buckets * math.Log(buckets/empty))
	if d > MaxValues {
		return nil
	}
	c.distinct = d
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.own)), func(value string) bool { return !c.common(value, least) })
}

// common tells whether enough rows of all members have the hash of a value, so that it may be shown. Otherwise a
// member that asked for the count of another's value could learn of a single row.
func (c *category) common(value string, least float64) bool { return c.hashed[hashOf(value)] >= least }

// findValues counts, for each category, the values that some member may show.
func findValues(ctx context.Context, d *describing) error {
	var own, values [][]string
	var rows [][]float64
	categories := slices.DeleteFunc(slices.Clone(d.columns), func(c *column) bool { return c.category == nil })
	for _, c := range categories {
		own = append(own, c.category.begin(d.least))
	}
	all, err := table.GatherJSON(ctx, d.flock, "values", own)
	if err != nil {
		return err
	}
	for i, c := range categories {
		values = append(values, nil)
		for member, theirs := range all {
			if len(theirs) != len(own) || len(theirs[i]) > maxOwn || slices.ContainsFunc(theirs[i], func(v string) bool { return len(v) > maxName || !c.category.common(v, d.least) }) {
				return fmt.Errorf("%w: member %d of %d tells values that there cannot be", table.ErrSum, member+1, len(all))
			}
			values[i] = append(values[i], theirs[i]...)
		}
		slices.Sort(values[i])
		values[i] = slices.Compact(values[i])
		rows = append(rows, d.counted(len(values[i])))
		for j, value := range values[i] {
			rows[i][j] = c.category.own[value]
		}
	}
	if err := d.add(ctx, "values/rows"); err != nil {
		return err
	}
	for i, c := range categories {
		total := 0.0
		for j, value := range values[i] {
			total += rows[i][j]
			c.category.cells = append(c.category.cells, Cell{value, int64(rows[i][j])})
		}
		if c.category.own = nil; total > c.rows {
			return fmt.Errorf("%w: values of column %q have %g rows, the column %g", table.ErrSum, c.Name, total, c.rows)
		}
	}
	return nil
}
