package learn

import (
	"context"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Task leads from a table to a model: it says which rows and columns are used, how they are prepared, and which
// learner fits the model. All members of a flock use the same Task. Its methods do not change it, so several fits can
// use one.
type Task struct {
	// Plan says which target is learned, and from which rows. If its Stages are nil, the learner chooses them.
	prepare.Plan
	// Usual are the settings of the stages that the learner chooses.
	Usual   prepare.Usual
	Learner Learner
}

// Preparer is a Learner that needs stages other than Usual.Numbers.
type Preparer interface {
	Stages(usual prepare.Usual) []table.Stage
}

// Fitted is the result of a Task, the same at all members except Train and Test.
type Fitted struct {
	// File is what a service saves and predicts with.
	File
	// Scores are the scores on the held-out rows of all members. Models without a target have none, except models of
	// topics and preferences.
	Scores Scores
	// Prepared is how rows were prepared; Train and Test are this member's prepared rows.
	Prepared    *prepare.Prepared
	Train, Test Rows
}

// Fit carries out the whole task with all members of a flock. A member without a table passes nil.
func (t Task) Fit(ctx context.Context, flock table.Flock, rows table.Table) (*Fitted, error) {
	prepared, own, err := t.Prepare(ctx, flock, rows)
	if err != nil {
		return nil, err
	}
	return t.Learn(ctx, flock, prepared, own, own)
}

// Prepare is the first half of Fit: see Plan.Prepare.
func (t Task) Prepare(ctx context.Context, flock table.Flock, rows table.Table) (*prepare.Prepared, table.Source, error) {
	if t.Plan.Stages == nil {
		t.Plan.Stages = t.Usual.Numbers()
		if p, asks := t.Learner.(Preparer); asks {
			t.Plan.Stages = p.Stages(t.Usual)
		}
	}
	return t.Plan.Prepare(ctx, flock, rows)
}

// Learn is the second half of Fit, on the result of Prepare: it takes the training rows from own, this member's rows,
// and the held-out rows from held.
func (t Task) Learn(ctx context.Context, flock table.Flock, prepared *prepare.Prepared, own, held table.Source) (*Fitted, error) {
	train, test, err := t.Parts()
	if err != nil {
		return nil, err
	}
	f := &Fitted{Prepared: prepared, File: File{Pipeline: prepared.Pipeline, Target: t.Target, Features: prepared.Pipeline.Input.Fields}}
	f.Train, err = RowsOf(ctx, prepared, table.Filtered(own, train))
	if err = table.Ready(ctx, table.Scope(flock, "train"), "ready", err); err != nil {
		return nil, err
	}
	f.Classes = f.Train.Classes
	if f.Model, err = t.Learner.Fit(ctx, table.Scope(flock, "learn"), f.Train); err != nil || prepared.Labels == nil && !scored(f.Model) {
		return f, err
	}
	f.Test, err = RowsOf(ctx, prepared, table.Filtered(held, test))
	if err = table.Ready(ctx, table.Scope(flock, "test"), "ready", err); err != nil {
		return nil, err
	}
	f.Scores, err = Evaluate(ctx, table.Scope(flock, "scores"), f.Model, f.Test)
	return f, err
}

// scored tells whether a model without a target has scores.
func scored(m Model) bool {
	als, is := m.(*ALSModel)
	return is && als.Implicit || Models().NameOf(m) == "lda"
}

// RowsOf prepares rows and returns all of them in memory.
func RowsOf(ctx context.Context, prepared *prepare.Prepared, rows table.Source) (Rows, error) {
	columns, err := prepared.Columns() // a member without rows has the columns too
	if err != nil {
		return Rows{}, err
	}
	all, of := []*table.Batch{columns}, Rows{Target: []float64{}}
	for b, err := range rows(ctx) {
		if err != nil {
			return Rows{}, err
		}
		made, target, err := prepared.Of(b)
		if err != nil {
			return Rows{}, err
		}
		all, of.Target = append(all, made), append(of.Target, target...)
	}
	if prepared.Labels == nil {
		of.Target = nil
	} else {
		of.Classes = prepared.Labels.Classes
	}
	of.Features, err = table.Concat(all...)
	return of, err
}
