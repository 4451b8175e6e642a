package fit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/files"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
	"github.com/seed-97356399/murmuration/peer/table/summary"
)

// work is one member's part of a fit, from its rows to the result that all members get.
type work struct {
	options
	learner learner
	share   rows.Share
	flock   table.Flock
	tell    func(said string)
}

// task is the task of all members.
func (w *work) task() (learn.Task, error) {
	t := w.Table.Task(w.Shared)
	t.Learner, t.Classes = w.learner.make(w.Learner), w.learner.target == wantsClass
	t.Only, t.OnDisk = w.Learner.columns(), w.OnDisk
	if w.learner.target == "" && t.Target != "" { // the target is not an input
		target, err := table.ParseTarget(t.Target)
		if err != nil {
			return t, err
		}
		t.Target, t.Drop = "", append(slices.Clone(t.Drop), target.Column)
	}
	return t, nil
}

// run fits and evaluates.
func (w *work) run(ctx context.Context) (Result, learn.File, error) {
	task, err := w.task()
	if err != nil {
		return Result{}, learn.File{}, err
	}
	report := sync.OnceFunc(func() {
		for _, line := range w.share.ColumnNotes(w.Table.Drop) {
			w.tell(line)
		}
	})
	begun := time.Now()
	task.Check = func(l *table.Labels) error { // the rows have been read by now
		report()
		begun = time.Now()
		if err := w.learner.fits(l); err != nil || w.Learner.Apart == "" {
			return err
		}
		return w.ensemble().Check(l.Classes)
	}
	unrelated, err := w.unrelated(ctx, task)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	task.Drop = append(slices.Clone(task.Drop), unrelated...)
	prepared, own, err := w.share.Prepare(ctx, w.flock, task)
	if report(); err != nil {
		return Result{}, learn.File{}, err
	}
	done := Result{Learner: w.learner.name, Peers: prepared.Peers, Rows: prepared.Rows}
	done.EqualRows, done.Unrelated = prepared.Equal, unrelated
	if task.Only == nil {
		done.LeftOut = slices.Sorted(slices.Values(rows.LeftOut(prepared, w.share.Schema(), task.Drop...)))
	}
	if len(done.LeftOut) > 0 {
		w.tell(rows.LeftOutNote(done.LeftOut, w.Table.MaxValues))
	}
	fitted, err := task.Learn(ctx, w.flock, prepared, own, own)
	if err != nil {
		return Result{}, learn.File{}, err
	}
	done.Columns, done.Seconds = len(fitted.Train.Features.Columns), time.Since(begun).Seconds()
	done.score(fitted.Scores)
	switch m := fitted.Model.(type) {
	case *learn.KMeansModel:
		done.Inertia = &m.Inertia
	case *learn.PCAModel:
		done.Explained = m.Explained
	case *learn.LDAModel:
		done.Topics = m.TopWords(topWords)
	default:
		if done.Compared, err = w.compared(ctx, fitted.Train, fitted.Test); err != nil {
			return Result{}, learn.File{}, err
		}
	}
	if w.Alone && done.ClassScores != nil {
		if done.ClassScores.Alone, err = w.alone(ctx, task, prepared, own); err != nil {
			return Result{}, learn.File{}, err
		}
	}
	fitted.File.Target = w.Table.Target
	done.Hash, err = hashOf(fitted.File)
	return done, fitted.File, err
}

// topWords is how many words of each topic are shown.
const topWords = 8

// training are the training rows of a table.
type training struct {
	table.Table
	part table.Filter
}

// Rows implements table.Table.
func (t training) Rows(ctx context.Context) iter.Seq2[*table.Batch, error] {
	return table.Filtered(t.Table.Rows, t.part)(ctx)
}

// unrelated returns the columns that --drop-unrelated leaves out, the same at all members.
func (w *work) unrelated(ctx context.Context, task learn.Task) ([]string, error) {
	if w.Unrelated == 0 {
		return nil, nil
	}
	train, _, err := task.Parts()
	if err != nil {
		return nil, err
	}
	c := summary.Config{Target: task.Target, Drop: task.Drop}
	s, err := c.Describe(ctx, table.Scope(w.flock, "unrelated"), training{w.share, train})
	if err != nil {
		return nil, err
	}
	names := s.Unrelated(w.Unrelated)
	if all := s.Unrelated(1); len(all) > 0 && len(names) == len(all) {
		return nil, cli.Config(fmt.Errorf("--drop-unrelated %g leaves no column: each tells at most that share of %s", w.Unrelated, task.Target))
	}
	if len(names) > 0 {
		w.tell(fmt.Sprintf("columns left out, which tell at most %g of the target: %s", w.Unrelated, strings.Join(names, ", ")))
	}
	return names, nil
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

// compared fits the models for comparison, if flags ask for them.
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

// ensemble is the learner of --apart.
func (w *work) ensemble() learn.Ensemble {
	return learn.Ensemble{Learner: w.learner.make(w.Learner), Combine: learn.Combination(w.Learner.Apart), Seed: w.Learner.Seed}
}

// apart combines models that members have fitted separately, and scores the result.
func (w *work) apart(ctx context.Context, training, held learn.Rows) (*Apart, error) {
	model, err := w.ensemble().Fit(ctx, table.Scope(w.flock, "apart"), training)
	if err != nil {
		return nil, err
	}
	scores, err := learn.Evaluate(ctx, table.Scope(w.flock, "apart/scores"), model, held)
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

// folds fits, for each part of the training rows, on all other parts.
func (w *work) folds(ctx context.Context, training learn.Rows) (*Folds, error) {
	folds, err := w.Learner.parts()
	if err != nil {
		return nil, err
	}
	scores, err := learn.CrossValidate(ctx, table.Scope(w.flock, "folds"), w.learner.make(w.Learner), training, folds)
	if err != nil {
		return nil, err
	}
	all, classes := make([]float64, len(folds)), false
	for i, s := range scores {
		if classes = s.Classes != nil; classes {
			all[i] = s.Classes.AUC
		} else {
			all[i] = s.Numbers.RMSE
		}
	}
	of := result.AccuracyOf(all...)
	if classes {
		return &Folds{Count: len(folds), AUC: &of}, nil
	}
	return &Folds{Count: len(folds), RMSE: &of}, nil
}

// alone fits this member's rows separately, and gathers each member's area under the curve on the held-out rows of
// all.
func (w *work) alone(ctx context.Context, task learn.Task, prepared *prepare.Prepared, own table.Source) (*result.Accuracy, error) {
	type alone struct {
		Area float64
		Why  string // it cannot be fitted
	}
	area, err := w.areaAlone(ctx, task, prepared, own)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	mine := alone{Area: area}
	if err != nil {
		mine = alone{chance, err.Error()}
	}
	all, err := table.GatherJSON(ctx, w.flock, "alone", mine)
	if err != nil {
		return nil, err
	}
	var areas []float64
	for _, a := range all {
		if areas = append(areas, a.Area); a.Why != "" {
			w.tell(fmt.Sprintf("the rows of a peer cannot be fitted alone, which counts as an area of %g: %s", chance, a.Why))
		}
	}
	of := result.AccuracyOf(areas...)
	return &of, nil
}

// chance is the area of a model that cannot tell classes apart, for a member whose rows are of one class, or too few.
const chance = 0.5

func (w *work) areaAlone(ctx context.Context, task learn.Task, prepared *prepare.Prepared, own table.Source) (float64, error) {
	train, _, err := task.Parts()
	if err != nil {
		return 0, err
	}
	training, some := table.Filtered(own, train), false
	for b, err := range training(ctx) {
		if err != nil {
			return 0, err
		}
		if some = b.Rows > 0; some {
			break
		}
	}
	if !some {
		return chance, nil
	}
	if prepared, err = prepared.Refit(ctx, table.Alone{}, training); err != nil {
		return 0, err
	}
	fitted, err := task.Learn(ctx, table.Alone{}, prepared, own, w.share.Source.Rows)
	if errors.Is(err, table.ErrOneClass) || errors.Is(err, learn.ErrNoRows) {
		return chance, nil
	}
	if err != nil {
		return 0, err
	}
	return fitted.Scores.Classes.AUC, nil
}

// save writes the model.
func save(path string, file learn.File) error {
	err := files.Replace(path, 0o644, func(out io.Writer) error { return learn.Save(out, file) })
	if err != nil {
		return cli.Config(fmt.Errorf("writing the model: %w", err))
	}
	return nil
}
