package summary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

const (
	maxTries = 3
	// maxClassSpan is the span up to which whole numbers count as classes.
	maxClassSpan = 20
)

// Config says how rows are described; it must be the same at all members.
type Config struct {
	// Target is a column, or a comparison that table.ParseTarget reads, to which the other columns are related; "" is
	// none. Whole numbers that span less than 20 count as classes.
	Target string `json:"target,omitempty"`
	// Drop are columns to leave out.
	Drop []string `json:"drop,omitempty"`
	// Weight is a column of how many rows each row stands for, a whole number; "" is one each.
	Weight string `json:"weight,omitempty"`
	// Least is how many rows of the flock a cell must have to be shown: smaller cells are merged with others, or
	// withheld. Default: 10; 1 shows all.
	Least int `json:"least,omitempty"`
}

// column has the sums of one column.
type column struct {
	table.Field
	present  []float64 // this member's rows with a value
	rows     float64   // the same for all members
	number   *number   // of numbers
	category *category // of a category
	crossed  *crossed  // nil without a target
}

// describing is the state of a description.
type describing struct {
	sums
	Config
	least   float64
	schema  *table.Schema
	source  table.Source
	ones    []float64
	columns []*column
	pairs   []*pair
	target  table.Target
	labels  *table.Labels
	classes []float64 // rows of each class of the target, or bin of its numbers
	tenths  []float64 // the edges of these bins
	out     Summary
}

// Describe describes the rows of all members, who all call it; a member without a table passes nil. Rows are read at
// most five times, and not kept: a column of numbers takes 150 KB of memory, a category up to 12 MB, and each 0.5 MB
// more with a target. If a member dies, the others start again. Errors are those of the rows, of the target, of other
// members (table.ErrMember, table.ErrUnlike, ErrUnsteady) and of invalid sums (table.ErrSum).
func (c Config) Describe(ctx context.Context, flock table.Flock, rows table.Table) (*Summary, error) {
	if c.Least = cmp.Or(c.Least, DefaultLeast); rows == nil {
		rows = table.Held()
	}
	for try := range maxTries {
		d := &describing{Config: c, least: float64(c.Least), source: rows.Rows, sums: sums{flock: table.Scope(flock, fmt.Sprint("summary", try))}}
		if err := d.describe(ctx, rows); err == nil {
			return &d.out, nil
		} else if !errors.Is(err, ErrUnsteady) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("describing rows, %d times: %w", maxTries, ErrUnsteady)
}

func (d *describing) describe(ctx context.Context, rows table.Table) (err error) {
	if d.schema, err = table.Agree(ctx, d.flock, rows.Schema()); err != nil {
		return err
	}
	if err := table.Ready(ctx, d.flock, "ready", errors.Join(append(d.begin(), rows.Pin(d.schema))...), d.Config, d.schema); err != nil {
		return err
	}
	if err := d.first(ctx); err != nil {
		return err
	}
	if err := findValues(ctx, d); err != nil {
		return err
	}
	if d.Target != "" {
		if d.labels, err = d.target.Fit(ctx, table.Scope(d.flock, "target"), d.schema, d.source); err != nil {
			return err
		}
	}
	pairUp(d)
	for round := range rounds {
		if err := d.again(ctx, round); err != nil {
			return err
		}
	}
	return d.tell()
}

// begin checks the settings, and allocates the columns.
func (d *describing) begin() (faults []error) {
	if d.Target != "" {
		var err error
		d.target, err = table.ParseTarget(d.Target)
		faults = append(faults, err)
	}
	if faults = append(faults, table.DistinctNames(d.schema.Names())); d.Least < 1 {
		faults = append(faults, fmt.Errorf("Least is %d: want 1 or more rows", d.Least))
	}
	for i, name := range append(slices.Clone(d.Drop), d.Weight) {
		at, weight := d.schema.Find(name), i == len(d.Drop)
		if !(weight && name == "") && (at < 0 || name == d.target.Column || weight && d.schema.Fields[at].Kind != table.Number) {
			faults = append(faults, fmt.Errorf("column %q cannot be left out or be a weight: it is not there, is the target, or is of categories", name))
		}
	}
	for _, f := range d.schema.Fields {
		if slices.Contains(d.Drop, f.Name) || f.Name == d.Weight {
			continue
		}
		c := &column{Field: f, present: d.counted(1)}
		if d.columns = append(d.columns, c); f.Kind == table.Category {
			c.category = &category{hashed: d.counted(buckets), own: map[string]float64{}}
		} else {
			c.number = &number{sum: d.summed(2), ends: room(&d.ends, 2)}
			c.number.ends[0], c.number.ends[1] = -2*maxNumber, -2*maxNumber
		}
	}
	return faults
}

// pass reads this member's rows once, tells the others whether that succeeded, and adds up the counts of all.
func (d *describing) pass(ctx context.Context, name string, number func(c *column, x, rows float64), batch func(b *table.Batch, weights []float64) error) error {
	err := error(nil)
	for b, fault := range d.source(ctx) {
		if err = fault; err == nil {
			err = d.numbers(b, number)
		}
		if err == nil {
			err = batch(b, d.weights(b))
		}
		if err != nil {
			break
		}
	}
	if err := table.Ready(ctx, d.flock, name, err); err != nil {
		return err
	}
	return d.add(ctx, name)
}

// weights returns how many rows each row of a batch stands for.
func (d *describing) weights(b *table.Batch) []float64 {
	if c := b.Find(d.Weight); c != nil && d.Weight != "" {
		return c.Numbers
	}
	d.ones = append(d.ones, slices.Repeat([]float64{1}, max(b.Rows-len(d.ones), 0))...)
	return d.ones[:b.Rows]
}

// numbers calls do for the numbers of a batch that are not missing, after checking them.
func (d *describing) numbers(b *table.Batch, do func(c *column, x, rows float64)) error {
	weights := d.weights(b)
	if row := slices.IndexFunc(weights, func(w float64) bool { return !(w >= 0 && w == math.Floor(w) && w <= table.MaxCount) }); row >= 0 {
		return fmt.Errorf("the weight of row %d is %g: want a number of rows", b.Key(row), weights[row])
	}
	for i, c := range d.columns {
		of := b.FindNear(c.Name, i)
		if of == nil || of.Kind != c.Kind {
			return fmt.Errorf("column %q is not there as a %s", c.Name, c.Kind)
		}
		for row, x := range of.Numbers {
			if math.Abs(x) > maxNumber {
				return fmt.Errorf("column %q is %g in row %d, %w", c.Name, x, b.Key(row), table.ErrNumbers)
			}
			if x == x && weights[row] > 0 {
				do(c, x, weights[row])
			}
		}
	}
	return nil
}

// first counts rows and values, and finds the least and the largest numbers.
func (d *describing) first(ctx context.Context) error {
	all, own := d.counted(1), 0.0
	if err := d.pass(ctx, "first", func(c *column, x, rows float64) {
		c.present[0] += rows
		c.number.first(x, rows)
	}, func(b *table.Batch, weights []float64) error {
		for _, w := range weights {
			own += w
		}
		for _, c := range d.columns {
			if c.category != nil {
				c.present[0] += c.category.first(b.Find(c.Name), weights)
			}
		}
		all[0] = own
		return nil
	}); err != nil {
		return err
	}
	d.out = Summary{Rows: int64(all[0]), Members: d.members, Least: d.Least, Target: d.Target, Classes: []Cell{}}
	for _, c := range d.columns {
		err := error(nil)
		if c.rows = c.present[0]; c.rows > all[0] {
			err = fmt.Errorf("%w: it has %g rows, the table %g", table.ErrSum, c.rows, all[0])
		} else if c.number != nil && c.rows > 0 {
			err = c.number.begin(c.rows)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		if n := c.number; c.Name == d.target.Column && d.target.Op == "" && n != nil && c.rows > 0 {
			d.target.Classes = n.whole && n.ends[0]-n.least < maxClassSpan
		}
	}
	if own < d.least {
		own = 0 // then the member reports 0 rows
	}
	var err error
	d.out.MemberRows, err = table.GatherJSON(ctx, d.flock, "rows", int64(own))
	for i, n := range d.out.MemberRows {
		if n < 0 || n > d.out.Rows {
			return fmt.Errorf("%w: member %d of %d has %d rows, all have %d", table.ErrSum, i+1, len(d.out.MemberRows), n, d.out.Rows)
		}
	}
	if err == nil && len(d.out.MemberRows) != d.members {
		err = ErrUnsteady
	}
	return err
}

// again is one of the passes for sums that depend on the first pass.
func (d *describing) again(ctx context.Context, round int) error {
	last := round == rounds-1
	for _, c := range d.columns {
		if n := c.number; n != nil && c.rows > 0 {
			if n.counts = d.counted(len(n.spans) * parts); round == 0 {
				n.moments = d.summed(3)
			}
			if last {
				n.cut()
				n.binned = d.counted(len(n.edges) - 1)
			}
		}
	}
	if last && d.labels != nil {
		d.crossAll()
	}
	if err := d.pass(ctx, fmt.Sprint("pass", round), func(c *column, x, rows float64) { c.number.again(x, rows, round) }, func(b *table.Batch, weights []float64) error {
		for _, p := range d.pairs {
			if round == 0 {
				p.add(b, weights)
			}
		}
		if last && d.labels != nil {
			return d.relate(b)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, c := range d.columns {
		if c.number != nil && c.rows > 0 {
			if err := c.number.divide(); err != nil {
				return fmt.Errorf("column %q: %w", c.Name, err)
			}
		}
	}
	return nil
}

// crossAll prepares to count all columns by the target, except the target's own column.
func (d *describing) crossAll() {
	n := len(d.labels.Classes)
	if i := slices.IndexFunc(d.columns, func(c *column) bool { return c.Name == d.target.Column }); n == 0 {
		d.tenths = d.columns[i].number.tenths
		n = len(d.tenths) + 1
	}
	d.classes = d.counted(n)
	for _, c := range d.columns {
		if c.Name != d.target.Column {
			c.crossed = cross(d, c)
		}
	}
}

// tell makes the summary from the sums.
func (d *describing) tell() (err error) {
	for _, c := range d.columns {
		of := Column{Name: c.Name, Kind: c.Kind, Missing: d.out.Rows - int64(c.rows), Withheld: c.rows < d.least}
		switch {
		case of.Withheld:
		case c.category != nil:
			of.Values = &Values{Distinct: int64(c.category.distinct)}
			of.Top, of.Others = told(c.category.cells, int64(c.rows), MaxTop, d.least)
		default:
			if of.Numbers, err = c.number.told(d.least); err != nil {
				return fmt.Errorf("column %q: %w", c.Name, err)
			}
		}
		if c.crossed != nil {
			of.Relation = c.crossed.relation(len(d.classes))
		}
		d.out.Columns = append(d.out.Columns, of)
	}
	d.out.Correlations = correlations(d.pairs, d.least)
	if d.labels == nil || d.labels.Classes == nil {
		return nil
	}
	var cells []Cell
	total, place := int64(0), func(c Cell) int { return slices.Index(d.labels.Classes, c.Value) }
	for i, class := range d.labels.Classes {
		cells = append(cells, Cell{class, int64(d.classes[i])})
		total += cells[i].Rows
	}
	d.out.Classes, d.out.OtherClasses = told(cells, total, len(cells), d.least)
	slices.SortFunc(d.out.Classes, func(a, b Cell) int { return place(a) - place(b) })
	return nil
}
