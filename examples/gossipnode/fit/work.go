package fit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// work is one member's part of a fit, from its rows to the result that all have.
type work struct {
	*rows.Agreed
	learner learner
	options
	tell func(said string)
	// all are the rows of all peers of a local fit, where they are wanted.
	all table.Source
}

// run fits and evaluates.
func (w *work) run(ctx context.Context) (Result, learn.File, error) {
	l := w.learner
	if err := w.learnTarget(ctx); err != nil {
		return Result{}, learn.File{}, err
	}
	train, test, err := w.Agreed.Table.Parts()
	if err != nil {
		return Result{}, learn.File{}, err
	}
	training, err := w.Take(ctx, w.Rows, train)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	testing, err := w.Take(ctx, w.Rows, test)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	count, peers, err := w.Trains(ctx, training, float64(w.Equal))
	if err != nil {
		return Result{}, learn.File{}, err
	}
	if err := w.narrow(ctx, training); err != nil {
		return Result{}, learn.File{}, err
	}
	begun := time.Now()
	stages, rows, err := w.prepare(ctx, w.Flock, "fit/prepare", training)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	model, err := l.make(w.Learner).Fit(ctx, w.Flock, "fit/learn", rows)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	done := Result{Learner: l.name, Columns: len(rows.Features.Columns), Seconds: time.Since(begun).Seconds()}
	done.Peers, done.Rows, done.EqualRows = peers, int64(count[0]), int64(count[1])
	if l.name != ratings {
		done.LeftOut = w.LeftOut
	}
	switch m := model.(type) {
	case *learn.KMeansModel:
		done.Inertia = &m.Inertia
	case *learn.PCAModel:
		done.Explained = m.Explained
	default:
		held, err := w.Transform(stages, testing)
		if err != nil {
			return Result{}, learn.File{}, err
		}
		scores, err := learn.Evaluate(ctx, w.Flock, "fit/scores", model, held)
		if err != nil {
			return Result{}, learn.File{}, err
		}
		done.score(scores)
		if done.Compared, err = w.compared(ctx, rows, held); err != nil {
			return Result{}, learn.File{}, err
		}
	}
	if w.Alone && done.ClassScores != nil {
		if done.ClassScores.Alone, err = w.alone(ctx, training, test); err != nil {
			return Result{}, learn.File{}, err
		}
	}
	file, err := w.file(stages, model)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	done.Hash, err = hashOf(file)
	return done, file, err
}

// hashOf tells models apart by what all members have of them.
func hashOf(file learn.File) (string, error) {
	if m, ok := file.Model.(*learn.ALSModel); ok {
		file.Model = m.Shared()
	}
	hash := sha256.New()
	if err := learn.Save(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// narrow leaves out columns that the learner has no use for.
func (w *work) narrow(ctx context.Context, training rows.Examples) error {
	if w.learner.name != ratings {
		err := w.LimitValues(ctx, training)
		if len(w.LeftOut) > 0 {
			w.tell(rows.ToldLeftOut(w.LeftOut, w.Agreed.Table.MaxValues))
		}
		return err
	}
	l := w.Learner
	if err := errors.Join(rows.Has(w.Schema, "user", l.User), rows.Has(w.Schema, "item", l.Item)); err != nil {
		return err
	}
	for _, f := range w.Features() {
		if f.Name != l.User && f.Name != l.Item {
			w.LeftOut = append(w.LeftOut, f.Name)
		}
	}
	return nil
}

// compared fits what is told beside the model that is kept, if it is asked for.
func (w *work) compared(ctx context.Context, training, held learn.Rows) (c Compared, err error) {
	if w.Learner.Apart != "" {
		if c.Apart, err = w.apart(ctx, training, held); err != nil {
			return c, err
		}
	}
	if w.Learner.Folds > 0 {
		c.Folds, err = w.folds(ctx, training)
	}
	return c, err
}

// apart combines models that members fit alone, and scores that.
func (w *work) apart(ctx context.Context, training, held learn.Rows) (*Apart, error) {
	e := &learn.Ensemble{Learner: w.learner.make(w.Learner), Combine: learn.Combination(w.Learner.Apart), Seed: w.Learner.Seed}
	model, err := e.Fit(ctx, w.Flock, "fit/apart", training)
	if err != nil {
		return nil, err
	}
	scores, err := learn.Evaluate(ctx, w.Flock, "fit/apart/scores", model, held)
	if err != nil {
		return nil, err
	}
	a := &Apart{Combine: w.Learner.Apart}
	if c := scores.Classes; c != nil {
		auc := cli.Number(c.AUC)
		a.AUC = &auc
	}
	if n := scores.Numbers; n != nil {
		a.RMSE = &n.RMSE
	}
	return a, nil
}

// folds fits on all but one of some parts of the rows that train, for each.
func (w *work) folds(ctx context.Context, training learn.Rows) (*Folds, error) {
	folds, err := w.Learner.parts()
	if err != nil {
		return nil, err
	}
	scores, err := learn.CrossValidate(ctx, w.Flock, "fit/folds", w.learner.make(w.Learner), training, folds)
	if err != nil {
		return nil, err
	}
	var areas, off []float64
	for _, s := range scores {
		if s.Classes != nil {
			areas = append(areas, s.Classes.AUC)
		}
		if s.Numbers != nil {
			off = append(off, s.Numbers.RMSE)
		}
	}
	of := result.AccuracyOf(append(areas, off...)...)
	if areas != nil {
		return &Folds{Count: len(folds), AUC: &of}, nil
	}
	return &Folds{Count: len(folds), RMSE: &of}, nil
}

// learnTarget finds the classes that all members have, if the learner has a target.
func (w *work) learnTarget(ctx context.Context) (err error) {
	if w.Agreed.Table.Target == "" {
		return nil
	}
	if w.learner.target == "" {
		w.Target, err = table.ParseTarget(w.Agreed.Table.Target)
		return err
	}
	if err := w.LearnTarget(ctx, w.learner.target == wantsClass); err != nil {
		return err
	}
	return w.learner.fits(w.Labels.Classes)
}

// prepare fits the stages before the learner, and puts the rows through them.
func (w *work) prepare(ctx context.Context, flock table.Flock, name string, training rows.Examples) (*prepare.Pipeline, learn.Rows, error) {
	stages, err := w.Fit(ctx, flock, name, w.learner.prepare, training)
	if err != nil {
		return nil, learn.Rows{}, err
	}
	prepared, err := w.Transform(stages, training)
	return stages, prepared, err
}

// alone fits this member's rows without the others, and gathers the area under the curve of
// each on the held-out rows of all.
func (w *work) alone(ctx context.Context, training rows.Examples, test table.Filter) (*result.Accuracy, error) {
	area, err := w.areaAlone(ctx, training, test)
	if err != nil {
		return nil, err
	}
	areas, err := table.GatherJSON(ctx, w.Flock, "fit/alone", area)
	if err != nil {
		return nil, err
	}
	of := result.AccuracyOf(areas...)
	return &of, nil
}

// chance is the area of who cannot tell classes apart: of a member whose rows have only one.
const chance = 0.5

func (w *work) areaAlone(ctx context.Context, training rows.Examples, test table.Filter) (float64, error) {
	held, err := w.Take(ctx, w.all, test)
	if err != nil {
		return 0, err
	}
	stages, rows, err := w.prepare(ctx, table.Alone{}, "alone/prepare", training)
	if err != nil {
		return 0, err
	}
	model, err := w.learner.make(w.Learner).Fit(ctx, table.Alone{}, "alone/learn", rows)
	if errors.Is(err, table.ErrOneClass) || errors.Is(err, learn.ErrNoRows) {
		return chance, nil
	}
	if err != nil {
		return 0, err
	}
	prepared, err := w.Transform(stages, held)
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
func (w *work) file(stages *prepare.Pipeline, model learn.Model) (learn.File, error) {
	pipeline, err := json.Marshal(stages)
	if err != nil {
		return learn.File{}, fmt.Errorf("writing the stages: %w", err)
	}
	file := learn.File{Pipeline: pipeline, Target: w.Agreed.Table.Target, Features: w.Features(), Model: model}
	if w.Labels != nil {
		file.Classes = w.Labels.Classes
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
