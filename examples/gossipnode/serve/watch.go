package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/read"
)

// watched is files that may be replaced.
type watched struct {
	paths []string
	seen  []fs.FileInfo // at the last look
}

// changed tells whether a file is another than at the last look, and remembers it.
func (w *watched) changed() (bool, error) {
	now := make([]fs.FileInfo, len(w.paths))
	for i, path := range w.paths {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		now[i] = info
	}
	same := func(a, b fs.FileInfo) bool {
		return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
	}
	if slices.EqualFunc(now, w.seen, same) {
		return false, nil
	}
	w.seen = now
	return true, nil
}

// modelFiles are the files of --model.
type modelFiles struct {
	watched
	combine string
}

// next reads the files if one has changed. A file that is being written is read again when it has changed further, and one that
// cannot be read at the next look: who gives leave to read it does not change it.
func (f *modelFiles) next(context.Context) (serve.Model, error) {
	if changed, err := f.changed(); err != nil || !changed {
		return nil, err
	}
	sum := sha256.New()
	files := make([]learn.File, len(f.paths))
	for i, path := range f.paths {
		in, err := os.Open(path)
		if err == nil {
			_, err = io.Copy(sum, in)
			_ = in.Close() // it was only read
		}
		if err != nil {
			f.seen = nil
		} else {
			files[i], err = rows.OpenModel(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return Of(hex.EncodeToString(sum.Sum(nil)[:6]), f.combine, files...)
}

// maxHeld bounds the memory of held-out rows.
const maxHeld = 1 << 30

// judge measures models on the rows of --held-out, which are read again when their files have changed.
type judge struct {
	watched
	reading read.Config
	batches []*table.Batch
	figures map[string]float64 // of these rows, by version
}

// measure implements serve.Checks.Judge: the accuracy of classes, or R² of numbers.
func (j *judge) measure(ctx context.Context, models ...serve.Model) ([]float64, error) {
	changed, err := j.changed()
	if err != nil {
		return nil, err
	}
	if changed || j.batches == nil {
		j.batches, j.figures = nil, make(map[string]float64)
		if err := j.read(ctx, models[0].(*model)); err != nil {
			return nil, rows.Remedied(err)
		}
	}
	figures, measured := make([]float64, len(models)), false
	for i, m := range models {
		version := m.About().Version
		figure, known := j.figures[version]
		if !known {
			one, fault := j.figure(m.(*model))
			if figure = one; fault != nil {
				figure, err = math.NaN(), fault // it cannot be measured, and others can, perhaps
			}
			if len(j.figures) >= maxFigures {
				clear(j.figures)
			}
			j.figures[version] = figure
		}
		figures[i], measured = figure, measured || !math.IsNaN(figure)
	}
	if measured {
		err = nil
	}
	return figures, errors.Join(err, ctx.Err())
}

// maxFigures bounds the figures that are remembered.
const maxFigures = 64

// read reads the rows with the columns of a model, and its target.
func (j *judge) read(ctx context.Context, m *model) error {
	labels, err := labelsOf(m.about)
	if err != nil {
		return err
	}
	reading := j.reading
	reading.Others = true
	reading.Kinds = map[string]table.Kind{}
	for _, f := range m.about.Fields {
		reading.Kinds[f.Name] = f.Kind
	}
	if labels.Target.Op == "" {
		reading.Kinds[labels.Target.Column] = table.Number
		if labels.Classes != nil {
			reading.Kinds[labels.Target.Column] = table.Category
		}
	}
	t, err := read.Open(ctx, j.paths, reading)
	if err != nil {
		return fmt.Errorf("--held-out has to have the columns of the model, and its target %q: %w", m.about.Target, err)
	}
	j.batches, err = table.Hold(ctx, t.Rows, maxHeld)
	return err
}

// labelsOf gives the target of a model's rows.
func labelsOf(about serve.About) (*table.Labels, error) {
	target, err := table.ParseTarget(about.Target)
	if err != nil {
		return nil, cli.Config(fmt.Errorf("--held-out: the model %s has no target that it could be measured by", about.Kind))
	}
	return &table.Labels{Target: target, Classes: about.Classes}, nil
}

// figure is the share of rows whose class is right, or of the variance of numbers that is explained.
func (j *judge) figure(m *model) (float64, error) {
	labels, err := labelsOf(m.about)
	if err != nil {
		return 0, err
	}
	var right float64
	var said, truths []float64 // of all rows
	for _, b := range j.batches {
		features, target, err := labels.Of(b)
		if err != nil {
			return 0, fmt.Errorf("--held-out: %w", err)
		}
		values, err := m.predict(nil, features)
		if err != nil {
			return 0, fmt.Errorf("--held-out: %w", err)
		}
		n := m.about.Outputs
		for row, truth := range target {
			one := values[row*n : (row+1)*n]
			if m.about.Classes != nil && slices.Index(one, slices.Max(one)) == int(truth) {
				right++
			}
			said = append(said, one[0])
		}
		truths = append(truths, target...)
	}
	if m.about.Classes != nil {
		return right / float64(len(truths)), nil
	}
	return stat.RSquaredFrom(said, truths, nil), nil
}
