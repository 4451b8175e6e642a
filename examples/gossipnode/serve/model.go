package serve

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/serve"
	"github.com/seed-97356399/murmuration/peer/table"
)

// Values of --combine.
const (
	combineAverage = "average"
	combineVote    = "vote"
)

// model serves one file, or several that are combined.
type model struct {
	about serve.About
	files []learn.File
	vote  bool
}

// Of makes a model of files, which know the same classes; each prepares rows by itself.
func Of(version, combine string, files ...learn.File) (serve.Model, error) {
	first := files[0]
	m := &model{files: files, vote: combine == combineVote}
	m.about = serve.About{Kind: rows.KindOf(first.Model), Version: version, Target: first.Target, Classes: first.Classes, Outputs: first.Model.Outputs()}
	if m.about.Figure = "r2"; first.Classes != nil {
		m.about.Figure = "accuracy"
	}
	for _, f := range files {
		if !slices.Equal(f.Classes, first.Classes) || f.Model.Outputs() != first.Model.Outputs() || f.Target != first.Target {
			return nil, cli.Config(fmt.Errorf("the models predict %q in %d classes and %q in %d: give models of one target", first.Target, len(first.Classes), f.Target, len(f.Classes)))
		}
		if _, fixed := f.Model.(*learn.KMeansModel); fixed && len(files) > 1 {
			return nil, cli.Config(fmt.Errorf("clusters of several models have nothing in common: give one --model"))
		}
		for _, field := range f.Features {
			at := slices.IndexFunc(m.about.Fields, func(known table.Field) bool { return known.Name == field.Name })
			if at < 0 {
				m.about.Fields = append(m.about.Fields, table.Field{Name: field.Name, Kind: field.Kind})
			} else if m.about.Fields[at].Kind != field.Kind {
				return nil, cli.Config(fmt.Errorf("column %q is a %s of one model and a %s of another", field.Name, m.about.Fields[at].Kind, field.Kind))
			}
		}
	}
	if m.vote && first.Classes == nil {
		return nil, cli.Config(fmt.Errorf("votes are for classes: give --combine %s", combineAverage))
	}
	if len(files) > 1 {
		m.about.Kind = fmt.Sprintf("%s of %d", combine, len(files))
	}
	return m, nil
}

// About implements serve.Model.
func (m *model) About() serve.About { return m.about }

// Predict implements serve.Model.
func (m *model) Predict(dst []float64, rows serve.Rows) ([]float64, error) {
	return m.predict(dst, rows.Table)
}

// predict appends the mean of all files' outputs; with votes, the share of files for which each class is the likeliest.
func (m *model) predict(dst []float64, features *table.Batch) ([]float64, error) {
	n, from := m.about.Outputs, len(dst)
	dst = append(dst, make([]float64, n*features.Rows)...)
	var values []float64
	for _, f := range m.files {
		var err error
		if values, err = f.Predict(values[:0], features); err != nil {
			return nil, err
		}
		for row := range features.Rows {
			one := values[row*n : (row+1)*n]
			if m.vote {
				likeliest := slices.Index(one, slices.Max(one))
				clear(one)
				one[likeliest] = 1
			}
			for i, v := range one {
				dst[from+row*n+i] += v / float64(len(m.files))
			}
		}
	}
	return dst, nil
}
