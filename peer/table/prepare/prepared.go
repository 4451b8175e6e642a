package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Prepared turns rows of a table into what a model takes. Members compute it together, so it is the same at
// all. It is written and read by encoding/json.
type Prepared struct {
	Pipeline *Pipeline `json:"pipeline"`
	// Labels are of the target, nil without one.
	Labels *table.Labels `json:"labels"`
	// Rows are those that train, of all members that have taken part.
	Rows int64 `json:"rows"`
	// Peers is how many have, and Equal the rows that Plan.Distinct has left out; both are 0 of one that was read.
	Peers int   `json:"-"`
	Equal int64 `json:"-"`
}

// Of prepares rows and returns their columns, and their target if the table has one; it then leaves out rows whose target is
// missing.
func (p *Prepared) Of(b *table.Batch) (made *table.Batch, target []float64, err error) {
	if p.Labels != nil {
		if b, target, err = p.Labels.Of(b); err != nil {
			return nil, nil, err
		}
	}
	if made, err = p.Pipeline.Transform(b); err != nil || p.Labels == nil {
		return made, nil, err
	}
	return made, stay(target, b, made), nil
}

// stay are the targets of the rows of b that are left in made: a stage may leave some out.
func stay(target []float64, b, made *table.Batch) []float64 {
	if made.Rows == b.Rows {
		return target
	}
	kept := make([]float64, 0, made.Rows)
	for row := range b.Rows {
		if n := len(kept); n < made.Rows && made.Key(n) == b.Key(row) {
			kept = append(kept, target[row])
		}
	}
	return kept
}

// Columns is a batch without rows that has the columns of prepared rows.
func (p *Prepared) Columns() (*table.Batch, error) {
	none := &table.Batch{}
	for _, f := range p.Pipeline.Input.Fields {
		none.Columns = append(none.Columns, table.Column{Name: f.Name, Kind: f.Kind})
	}
	return p.Pipeline.Transform(none)
}

// Refit is a copy of p, Rows too, with stages that are fitted on other training rows: on those of one member alone, say, to
// compare with all.
func (p *Prepared) Refit(ctx context.Context, flock table.Flock, rows table.Source) (*Prepared, error) {
	refitted := *p
	refitted.Pipeline = &Pipeline{Input: p.Pipeline.Input, Stages: p.Pipeline.Stages, Kinds: p.Pipeline.Kinds}
	training, err := table.Hold(ctx, p.training(rows), math.MaxInt64)
	if err != nil {
		return nil, err
	}
	return &refitted, refitted.fit(ctx, flock, table.InMemory(training...))
}

// training gives rows in the form in which stages are fitted on them.
func (p *Prepared) training(rows table.Source) table.Source {
	return table.Filtered(rows, func(b *table.Batch) (*table.Batch, error) {
		var target []float64
		if p.Labels != nil {
			var err error
			if b, target, err = p.Labels.Of(b); err != nil {
				return nil, err
			}
		}
		out := *b
		out.Columns = slices.DeleteFunc(slices.Clone(b.Columns), func(c table.Column) bool { return p.Pipeline.Input.Find(c.Name) < 0 })
		if p.Labels != nil {
			out.Columns = append(out.Columns, table.Column{Name: targetColumn, Numbers: target})
		}
		return &out, nil
	})
}

// count counts the training rows of all members.
func (p *Prepared) count(ctx context.Context, flock table.Flock, training table.Source, equal int) error {
	counts, local := []float64{0, float64(equal)}, error(nil)
	for b, err := range training(ctx) {
		if local = err; err == nil {
			counts[0] += float64(b.Rows)
		}
	}
	if err := table.Ready(ctx, flock, "counted", local); err != nil {
		return err
	}
	counts, peers, err := flock.Sum(ctx, "count", counts)
	if err != nil {
		return fmt.Errorf("counting the rows that train: %w", err)
	}
	if err := table.Counts("count", table.MaxCount, counts...); err != nil {
		return err
	}
	if p.Rows, p.Equal, p.Peers = int64(counts[0]), int64(counts[1]), peers; p.Rows == 0 {
		return ErrNoTraining
	}
	return nil
}

// fit fits copies of the stages, of which only the settings count.
func (p *Prepared) fit(ctx context.Context, flock table.Flock, training table.Source) error {
	stages := make([]table.Stage, len(p.Pipeline.Stages))
	for i, s := range p.Pipeline.Stages {
		copied := reflect.New(reflect.Indirect(reflect.ValueOf(s)).Type()).Interface().(table.Stage)
		data, err := json.Marshal(s)
		if err == nil {
			err = json.Unmarshal(data, copied)
		}
		if err != nil {
			return fmt.Errorf("%s: copying its settings: %w", at(i, s), err)
		}
		stages[i] = copied
	}
	p.Pipeline.Stages = stages
	return p.Pipeline.Fit(ctx, flock, training)
}
