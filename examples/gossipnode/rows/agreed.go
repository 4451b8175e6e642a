package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Agreed is a member's rows, and what it has agreed on with the others.
type Agreed struct {
	Table   settings.Table
	Flock   table.Flock
	Rows    table.Source // of this member, all columns
	Schema  *table.Schema
	Target  table.Target
	Labels  *table.Labels // nil without a target
	LeftOut []string      // columns with too many values, or of no use to the learner
	Dates   prepare.Dates // columns that are dates
	Equal   int           // rows left out, with Table.Distinct
}

// dropEqual leaves rows out that train and that others equal.
func (a *Agreed) dropEqual(ctx context.Context) error {
	train, _, err := a.Table.Parts()
	if err != nil {
		return err
	}
	keep, equal, err := prepare.Distinct(ctx, a.Flock, "fit/distinct", table.Filtered(a.Rows, train, table.Drop(a.Table.Drop...)))
	if err != nil {
		return err
	}
	a.Rows, a.Equal = table.Filtered(a.Rows, keep), equal
	return nil
}

// LearnTarget finds the classes that all members have. Where classes are wanted, a column of two
// numbers is of two classes.
func (a *Agreed) LearnTarget(ctx context.Context, classes bool) (err error) {
	if a.Target, err = table.ParseTarget(a.Table.Target); err != nil {
		return err
	}
	at := a.Schema.Find(a.Target.Column)
	a.Target.Classes = classes && at >= 0 && a.Target.Op == "" && a.Schema.Fields[at].Kind == table.Number
	a.Labels, err = a.Target.Fit(ctx, a.Flock, "fit/target", a.Schema, a.Rows)
	if a.Target.Classes && (errors.Is(err, table.ErrTooManyClasses) || err == nil && len(a.Labels.Classes) > 2) {
		a.Target.Classes = false
		a.Labels, err = a.Target.Fit(ctx, a.Flock, "fit/number", a.Schema, a.Rows)
	}
	return err
}

// Trains counts the rows that train over all members, and tells if the split leaves none. More is
// summed beside.
func (a *Agreed) Trains(ctx context.Context, training Examples, more ...float64) (sums []float64, peers int, err error) {
	rows := 0
	for _, b := range training.Batches {
		rows += b.Rows
	}
	sums, peers, err = a.Flock.Sum(ctx, "fit/count", append([]float64{float64(rows)}, more...))
	if err == nil {
		err = table.Counts("fit/count", table.MaxCount, sums...)
	}
	if err == nil && sums[0] == 0 {
		err = cli.Config(fmt.Errorf("--split %s leaves no row to train: give another, such as row:7/10, or more rows", a.Table.Split))
	}
	return sums, peers, err
}

// Examples are rows of a member as they are before preparation.
type Examples struct {
	Batches []*table.Batch
	Target  []float64
}

// Take has the rows that a filter lets through, without the target; there is a batch of no
// rows for the columns.
func (a *Agreed) Take(ctx context.Context, rows table.Source, filter table.Filter) (Examples, error) {
	var taken Examples
	add := func(b *table.Batch) error {
		b, err := a.features(b, &taken.Target)
		if err == nil && (b.Rows > 0 || len(taken.Batches) == 0) {
			taken.Batches = append(taken.Batches, b)
		}
		return err
	}
	if err := add(emptyOf(a.Schema.Fields)); err != nil {
		return Examples{}, err
	}
	for b, err := range table.Filtered(rows, filter)(ctx) {
		if err == nil {
			err = add(b)
		}
		if err != nil {
			return Examples{}, err
		}
	}
	return taken, nil
}

// features are the columns to learn from.
func (a *Agreed) features(b *table.Batch, target *[]float64) (*table.Batch, error) {
	switch {
	case a.Labels != nil:
		features, values, err := a.Labels.Of(b)
		if err != nil {
			return nil, err
		}
		*target = append(*target, values...)
		b = features
	case a.Table.Target != "":
		features, err := table.Drop(a.Target.Column)(b)
		if err != nil {
			return nil, err
		}
		b = features
	}
	return table.Drop(a.Table.Drop...)(b)
}

// LimitValues finds the columns of dates, and leaves out categories with too many values over all
// members.
func (a *Agreed) LimitValues(ctx context.Context, rows Examples) error {
	most := a.Table.MaxValues
	names := map[string][]string{}
	for _, b := range rows.Batches {
		for _, c := range b.Columns {
			if known := names[c.Name]; c.Kind == table.Category && len(known) <= most {
				known = append(known, c.Values...)
				slices.Sort(known)
				known = slices.Compact(known)
				names[c.Name] = known[:min(len(known), most+1)] // one more says enough
			}
		}
	}
	all, err := table.GatherJSON(ctx, a.Flock, "fit/values", names)
	if err != nil {
		return err
	}
	union := map[string][]string{}
	for _, some := range all {
		for column, values := range some {
			union[column] = append(union[column], values...)
		}
	}
	for column, values := range union {
		slices.Sort(values)
		if timed, dates := allDates(values); dates && !slices.Contains(a.Table.Categories, column) {
			if a.Dates.Columns == nil {
				a.Dates.Columns = map[string]bool{}
			}
			a.Dates.Columns[column] = timed
		} else if len(slices.Compact(values)) > most {
			a.LeftOut = append(a.LeftOut, column)
		}
	}
	slices.Sort(a.LeftOut)
	return nil
}

// allDates tells whether values are dates, and some with a time of the day.
func allDates(values []string) (timed, all bool) {
	for _, v := range values {
		_, has, ok := prepare.ParseDate(v)
		if !ok {
			return false, false
		}
		timed = timed || has
	}
	return timed, len(values) > 0
}

// Features are the columns that a model is given, before preparation.
func (a *Agreed) Features() (fields []table.Field) {
	for _, f := range a.Schema.Fields {
		if !slices.Contains(a.Table.Drop, f.Name) && !slices.Contains(a.LeftOut, f.Name) && f.Name != a.Target.Column {
			fields = append(fields, f)
		}
	}
	return fields
}

// Fit fits a preparation's stages on the rows of all members of a flock.
func (a *Agreed) Fit(ctx context.Context, flock table.Flock, name string, p Preparation, rows Examples) (*prepare.Pipeline, error) {
	narrow := table.Drop(a.LeftOut...)
	columns, err := narrow(rows.Batches[0])
	if err != nil {
		return nil, err
	}
	stages := p.Pipeline(columns, a.Table.Floor)
	if a.Dates.Columns != nil {
		stages.Stages = append([]table.Stage{&a.Dates}, stages.Stages...)
	}
	return stages, stages.Fit(ctx, flock, name, table.Filtered(table.InMemory(rows.Batches...), narrow))
}

// Transform puts rows through fitted stages.
func (a *Agreed) Transform(stages *prepare.Pipeline, rows Examples) (learn.Rows, error) {
	var batches []*table.Batch
	for _, b := range rows.Batches {
		b, err := stages.Transform(b)
		if err != nil {
			return learn.Rows{}, err
		}
		batches = append(batches, b)
	}
	all, err := table.Concat(batches...)
	if err != nil {
		return learn.Rows{}, err
	}
	prepared := learn.Rows{Features: all, Target: rows.Target}
	if a.Labels != nil {
		prepared.Classes = a.Labels.Classes
	}
	return prepared, nil
}
