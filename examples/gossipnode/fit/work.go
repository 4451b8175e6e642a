package fit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// work is one member's part of a fit, from its rows to the result that all have.
type work struct {
	options
	flock   table.Flock
	rows    table.Source // of this member, all columns
	schema  *table.Schema
	target  table.Target
	labels  *table.Labels // nil without a target
	leftOut []string      // columns with too many values
	// all are the rows of all peers of a local fit, where they are wanted.
	all table.Source
}

// examples are rows of a member as they are before preparation.
type examples struct {
	batches []*table.Batch
	target  []float64
}

// run fits and evaluates.
func (w *work) run(ctx context.Context) (Result, learn.File, error) {
	l := w.Learner.chosen()
	if err := w.learnTarget(ctx, l); err != nil {
		return Result{}, learn.File{}, err
	}
	split, err := w.split()
	if err != nil {
		return Result{}, learn.File{}, err
	}
	train, test := split.Train(), split.Test()
	if w.Table.Split == noSplit {
		test = train
	}
	training, err := w.take(ctx, w.rows, train)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	testing, err := w.take(ctx, w.rows, test)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	if err := w.limitValues(ctx, training); err != nil {
		return Result{}, learn.File{}, err
	}
	begun := time.Now()
	stages, rows, err := w.prepare(ctx, l, training)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	model, err := l.make(w.Learner).Fit(ctx, w.flock, "fit/learn", rows)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	done := Result{Learner: l.name, Columns: len(rows.Features.Columns), Seconds: time.Since(begun).Seconds()}
	count, peers, err := w.flock.Sum(ctx, "fit/count", []float64{float64(rows.Features.Rows)})
	if err != nil {
		return Result{}, learn.File{}, err
	}
	done.Peers, done.Rows = peers, int64(count[0])
	switch m := model.(type) {
	case *learn.KMeansModel:
		done.Inertia = &m.Inertia
	case *learn.PCAModel:
		done.Explained = m.Explained
	default:
		held, err := w.transform(stages, testing)
		if err != nil {
			return Result{}, learn.File{}, err
		}
		scores, err := learn.Evaluate(ctx, w.flock, "fit/scores", model, held)
		if err != nil {
			return Result{}, learn.File{}, err
		}
		done.score(scores)
	}
	if w.Alone && done.ClassScores != nil {
		if done.ClassScores.Alone, err = w.alone(ctx, l, training, test); err != nil {
			return Result{}, learn.File{}, err
		}
	}
	file, err := w.file(stages, model)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	hash := sha256.New()
	if err := learn.Save(hash, file); err != nil {
		return Result{}, learn.File{}, err
	}
	done.Hash = hex.EncodeToString(hash.Sum(nil)[:8])
	return done, file, nil
}

// learnTarget finds the classes that all members have.
func (w *work) learnTarget(ctx context.Context, l learner) (err error) {
	if w.Table.Target == "" {
		return nil
	}
	if w.target, err = table.ParseTarget(w.Table.Target); err != nil || l.target == "" {
		return err
	}
	if w.labels, err = w.target.Fit(ctx, w.flock, "fit/target", w.schema, w.rows); err != nil {
		return err
	}
	return l.fits(w.labels.Classes)
}

// take has the rows that a filter lets through, without the target; there is a batch of no
// rows for the columns.
func (w *work) take(ctx context.Context, rows table.Source, filter table.Filter) (examples, error) {
	none := &table.Batch{}
	for _, f := range w.schema.Fields {
		none.Columns = append(none.Columns, table.Column{Name: f.Name, Kind: f.Kind})
	}
	var taken examples
	add := func(b *table.Batch) error {
		b, err := w.features(b, &taken.target)
		if err == nil && (b.Rows > 0 || len(taken.batches) == 0) {
			taken.batches = append(taken.batches, b)
		}
		return err
	}
	if err := add(none); err != nil {
		return examples{}, err
	}
	for b, err := range table.Filtered(rows, filter)(ctx) {
		if err == nil {
			err = add(b)
		}
		if err != nil {
			return examples{}, err
		}
	}
	return taken, nil
}

// features are the columns to learn from.
func (w *work) features(b *table.Batch, target *[]float64) (*table.Batch, error) {
	switch {
	case w.labels != nil:
		features, values, err := w.labels.Of(b)
		if err != nil {
			return nil, err
		}
		*target = append(*target, values...)
		b = features
	case w.Table.Target != "":
		features, err := table.Drop(w.target.Column)(b)
		if err != nil {
			return nil, err
		}
		b = features
	}
	return table.Drop(w.Table.Drop...)(b)
}

// limitValues leaves out categories with too many values over all members.
func (w *work) limitValues(ctx context.Context, rows examples) error {
	names := map[string][]string{}
	for _, b := range rows.batches {
		for _, c := range b.Columns {
			if known := names[c.Name]; c.Kind == table.Category && len(known) <= w.Table.MaxValues {
				known = append(known, c.Values...)
				slices.Sort(known)
				known = slices.Compact(known)
				names[c.Name] = known[:min(len(known), w.Table.MaxValues+1)] // one more says enough
			}
		}
	}
	data, err := json.Marshal(names)
	if err != nil {
		return err
	}
	all, err := w.flock.Gather(ctx, "fit/values", data)
	if err != nil {
		return err
	}
	union := map[string][]string{}
	for _, data := range all {
		var some map[string][]string
		if err := json.Unmarshal(data, &some); err != nil {
			return fmt.Errorf("a member's values of categories: %w", err)
		}
		for column, values := range some {
			union[column] = append(union[column], values...)
		}
	}
	for column, values := range union {
		slices.Sort(values)
		if len(slices.Compact(values)) > w.Table.MaxValues {
			w.leftOut = append(w.leftOut, column)
		}
	}
	slices.Sort(w.leftOut)
	return nil
}

// prepare fits the stages before the learner, and puts the rows through them.
func (w *work) prepare(ctx context.Context, l learner, rows examples) (table.Stage, learn.Rows, error) {
	return w.prepareBy(ctx, w.flock, "fit/prepare", l, rows)
}

func (w *work) prepareBy(ctx context.Context, flock table.Flock, name string, l learner, rows examples) (table.Stage, learn.Rows, error) {
	narrow := table.Drop(w.leftOut...)
	columns, err := narrow(rows.batches[0])
	if err != nil {
		return nil, learn.Rows{}, err
	}
	stages := l.prepare.pipeline(columns, w.Table.Floor)
	if err := stages.Fit(ctx, flock, name, table.Filtered(table.InMemory(rows.batches...), narrow)); err != nil {
		return nil, learn.Rows{}, err
	}
	prepared, err := w.transform(stages, rows)
	return stages, prepared, err
}

// transform puts rows through fitted stages.
func (w *work) transform(stages table.Stage, rows examples) (learn.Rows, error) {
	var batches []*table.Batch
	narrow := table.Drop(w.leftOut...)
	for _, b := range rows.batches {
		b, err := narrow(b)
		if err != nil {
			return learn.Rows{}, err
		}
		if b, err = stages.Transform(b); err != nil {
			return learn.Rows{}, err
		}
		batches = append(batches, b)
	}
	all, err := table.Concat(batches...)
	if err != nil {
		return learn.Rows{}, err
	}
	prepared := learn.Rows{Features: all, Target: rows.target}
	if w.labels != nil {
		prepared.Classes = w.labels.Classes
	}
	return prepared, nil
}

// alone fits this member's rows without the others, and gathers the area under the curve of
// each on the held-out rows of all.
func (w *work) alone(ctx context.Context, l learner, training examples, test table.Filter) (*result.Accuracy, error) {
	area, err := w.areaAlone(ctx, l, training, test)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(area)
	if err != nil {
		return nil, err
	}
	all, err := w.flock.Gather(ctx, "fit/alone", data)
	if err != nil {
		return nil, err
	}
	var areas []float64
	for _, data := range all {
		if err := json.Unmarshal(data, &area); err != nil {
			return nil, err
		}
		areas = append(areas, area)
	}
	of := accuracyOf(areas...)
	return &of, nil
}

// chance is the area of who cannot tell classes apart: of a member whose rows have only one.
const chance = 0.5

func (w *work) areaAlone(ctx context.Context, l learner, training examples, test table.Filter) (float64, error) {
	held, err := w.take(ctx, w.all, test)
	if err != nil {
		return 0, err
	}
	stages, rows, err := w.prepareBy(ctx, table.Alone{}, "alone/prepare", l, training)
	if err != nil {
		return 0, err
	}
	model, err := l.make(w.Learner).Fit(ctx, table.Alone{}, "alone/learn", rows)
	if errors.Is(err, learn.ErrOneClass) || errors.Is(err, learn.ErrNoRows) {
		return chance, nil
	}
	if err != nil {
		return 0, err
	}
	prepared, err := w.transform(stages, held)
	if err != nil {
		return 0, err
	}
	scores, err := learn.Evaluate(ctx, table.Alone{}, "alone/scores", model, prepared)
	if err != nil || scores.Classes == nil {
		return chance, err
	}
	return scores.Classes.AUC, nil
}

// file is what predict needs.
func (w *work) file(stages table.Stage, model learn.Model) (learn.File, error) {
	pipeline, err := json.Marshal(stages)
	if err != nil {
		return learn.File{}, fmt.Errorf("writing the stages: %w", err)
	}
	file := learn.File{Pipeline: pipeline, Target: w.Table.Target, Model: model}
	for _, f := range w.schema.Fields {
		if !slices.Contains(w.Table.Drop, f.Name) && !slices.Contains(w.leftOut, f.Name) && f.Name != w.target.Column {
			file.Features = append(file.Features, f)
		}
	}
	if w.labels != nil {
		file.Classes = w.labels.Classes
	}
	return file, nil
}

// save writes the model.
func save(path string, file learn.File) error {
	err := files.Replace(path, 0o644, func(out io.Writer) error { return learn.Save(out, file) })
	if err != nil {
		return cli.Config(fmt.Errorf("writing the model: %w", err))
	}
	return nil
}
