package prepare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Plan says how a table is prepared before a model learns from it. All members of a flock have the same plan. Its
// methods do not change it, so members in one process may share one.
type Plan struct {
	// Target is what is to be learned, as table.ParseTarget reads it; "" is nothing.
	Target string `json:"target,omitempty"`
	// Classes has the numbers of a target column be classes, if there are two in all.
	Classes bool `json:"classes,omitempty"`
	// Drop are columns to leave out. Only are those to learn from, if not from all others.
	Drop []string `json:"drop,omitempty"`
	Only []string `json:"only,omitempty"`
	// Split says which rows train, as table.ParseSplit reads it; by "" all do.
	Split string `json:"split,omitempty"`
	// Distinct keeps one of the rows that train and are equal in all columns but those of Drop: see Distinct.
	Distinct bool `json:"distinct,omitempty"`
	// Stages prepare the columns: those of Usual, or others. What they learn is kept in a copy.
	Stages []table.Stage `json:"-"`
	// Kinds are those of Stages, for a file, if they are not all of this package.
	Kinds table.Kinds[table.Stage] `json:"-"`
	// Memory is how many bytes a member's rows may take as they are read. Default: 1 GiB.
	Memory int64 `json:"memory,omitempty"`
	// OnDisk has a member read its table again for each pass over the rows, instead of holding them in memory. Members
	// may differ in it.
	OnDisk bool `json:"on_disk,omitempty"`
	// Settings are what members compare before they read, by name; nil are those above.
	Settings map[string]string `json:"-"`
	// Check looks at the target, nil where there is none, as soon as it is known; all members have the same.
	Check func(*table.Labels) error `json:"-"`
}

const defaultMemory = 1 << 30

// ErrNoTraining says that a split leaves no row of any member to train on.
var ErrNoTraining = errors.New("no row of any member trains: give another split, or more rows")

// Parts are filters for the rows to train on and those to test on; without a split both pass all rows.
func (p Plan) Parts() (train, test table.Filter, err error) {
	split, err := table.ParseSplit(p.Split)
	if train, test = split.Train(), split.Test(); p.Split == "" {
		test = train
	}
	return train, test, err
}

// Prepare fits the stages together with all members of a flock, after they have agreed on the columns. A member
// without a table passes nil. It also returns this member's rows, held in memory. An error of one member is an
// error at all.
func (p Plan) Prepare(ctx context.Context, flock table.Flock, rows table.Table) (*Prepared, table.Source, error) {
	flock = table.Careful(flock)
	train, _, err := p.Parts()
	if err != nil {
		return nil, nil, err
	}
	schema, own, err := p.read(ctx, flock, rows)
	if err != nil {
		return nil, nil, err
	}
	equal := 0
	if p.Distinct {
		var keep table.Filter
		ordered := (&Pipeline{Input: *schema}).Transform // members may have their columns in any order
		if keep, equal, err = Distinct(ctx, table.Scope(flock, "distinct"), table.Filtered(own, train, ordered, table.Drop(p.Drop...))); err != nil {
			return nil, nil, err
		}
		own = table.Filtered(own, keep)
	}
	made := &Prepared{}
	if made.Labels, err = p.labels(ctx, flock, schema, own); err != nil {
		return nil, nil, err
	}
	if p.Check != nil {
		if err := p.Check(made.Labels); err != nil {
			return nil, nil, err
		}
	}
	made.Pipeline = &Pipeline{Input: p.input(schema, made.Labels), Stages: p.Stages, Kinds: p.Kinds}
	training := made.training(table.Filtered(own, train))
	if !p.OnDisk {
		held, err := table.Hold(ctx, training, math.MaxInt64)
		if err != nil {
			return nil, nil, err
		}
		training = table.InMemory(held...)
	}
	if err := made.count(ctx, flock, training, equal); err != nil {
		return nil, nil, err
	}
	if err := made.fit(ctx, table.Scope(flock, "prepare"), training); err != nil {
		return nil, nil, err
	}
	made.Pipeline.trim()
	return made, own, nil
}

// read agrees on settings and columns, and reads this member's rows.
func (p Plan) read(ctx context.Context, flock table.Flock, rows table.Table) (*table.Schema, table.Source, error) {
	settings := p.Settings
	if settings == nil {
		settings = p.settings()
	}
	if err := table.AgreeSettings(ctx, flock, "settings", settings); err != nil {
		return nil, nil, err
	}
	if rows == nil {
		rows = table.Held()
	}
	schema, err := table.Agree(ctx, flock, rows.Schema())
	if err != nil {
		return nil, nil, err
	}
	var held []*table.Batch
	local := rows.Pin(schema)
	for _, name := range slices.Concat(p.Drop, p.Only) {
		if schema.Find(name) < 0 && local == nil {
			local = fmt.Errorf("there is no column %q", name)
		}
	}
	if p.OnDisk {
		return schema, rows.Rows, table.Ready(ctx, flock, "ready", local)
	}
	if local == nil {
		held, local = table.Hold(ctx, rows.Rows, cmp.Or(p.Memory, defaultMemory))
	}
	return schema, table.InMemory(held...), table.Ready(ctx, flock, "ready", local)
}

// settings are those in which all members must agree.
func (p Plan) settings() map[string]string {
	text := func(v any) string {
		data, _ := json.Marshal(v) // a stage that cannot be written fails later, when it is fitted
		return string(data)
	}
	all := map[string]string{
		"Target": p.Target, "Classes": text(p.Classes), "Drop": text(p.Drop), "Only": text(p.Only), "Split": p.Split, "Distinct": text(p.Distinct),
	}
	for i, s := range p.Stages {
		all[at(i, s)] = text(s)
	}
	return all
}

// labels finds the target's labels, the same at all members.
func (p Plan) labels(ctx context.Context, flock table.Flock, schema *table.Schema, rows table.Source) (*table.Labels, error) {
	if p.Target == "" {
		return nil, nil
	}
	target, err := table.ParseTarget(p.Target)
	if err != nil {
		return nil, err
	}
	at := schema.Find(target.Column)
	target.Classes = p.Classes && at >= 0 && target.Op == "" && schema.Fields[at].Kind == table.Number
	labels, err := target.Fit(ctx, table.Scope(flock, "target"), schema, rows)
	if target.Classes && (errors.Is(err, table.ErrTooManyClasses) || err == nil && len(labels.Classes) > 2) {
		target.Classes = false
		labels, err = target.Fit(ctx, table.Scope(flock, "number"), schema, rows)
	}
	return labels, err
}

// input are the columns from which a model learns.
func (p Plan) input(schema *table.Schema, labels *table.Labels) (in table.Schema) {
	for _, f := range schema.Fields {
		target := labels != nil && f.Name == labels.Target.Column
		if !target && !slices.Contains(p.Drop, f.Name) && (len(p.Only) == 0 || slices.Contains(p.Only, f.Name)) {
			in.Fields = append(in.Fields, f)
		}
	}
	return in
}
