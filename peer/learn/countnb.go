package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// BernoulliNB is naive Bayes for binary features: a value above Threshold counts as 1,
// others as 0. One sum of classes × (columns + 1) numbers.
type BernoulliNB struct {
	// Alpha is added to the number of rows of each class with and without each column
	// (Laplace smoothing); 0 means 1.
	Alpha     float64 `json:"alpha"`
	Threshold float64 `json:"threshold"`
}

// Fit gives a *CountNBModel.
func (l BernoulliNB) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	return (&CountNBModel{Binary: true, Threshold: l.Threshold}).fit(ctx, flock, rows, l, l.Alpha, false)
}

// MultinomialNB is naive Bayes for counts, for example of words: no value may be negative.
// One sum of classes × (columns + 1) numbers.
type MultinomialNB struct {
	// Alpha is added to each count of a class (Laplace smoothing); 0 means 1.
	Alpha float64 `json:"alpha"`
}

// Fit gives a *CountNBModel.
func (l MultinomialNB) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	return new(CountNBModel).fit(ctx, flock, rows, l, l.Alpha, true)
}

// Stages implements Preparer: no column may be negative.
func (l MultinomialNB) Stages(usual prepare.Usual) []table.Stage { return usual.Counts() }

// CountNBModel is a naive Bayes model with log probabilities that are linear in the columns.
type CountNBModel struct {
	Coefficients
	// Binary first replaces values above Threshold by 1 and others by 0.
	Binary    bool    `json:"binary,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
}

// value is the value as the model counts it: 0 or 1 if the model is Binary.
func (m *CountNBModel) value(x float64) float64 {
	switch {
	case !m.Binary:
		return x
	case x > m.Threshold:
		return 1
	}
	return 0
}

func (m *CountNBModel) fit(ctx context.Context, flock table.Flock, rows Rows, settings any, alpha float64, counts bool) (Model, error) {
	var local error
	if counts {
		local = checkCounts(rows.Features)
	}
	columns, err := begin(ctx, flock, local, rows, settings)
	if err := cmp.Or(err, wantClasses(rows)); err != nil {
		return nil, err
	}
	if alpha = cmp.Or(alpha, 1); !(alpha > 0) {
		return nil, fmt.Errorf("learn: an alpha of %v; want a number that is not negative", alpha)
	}
	sums, err := sumsByClass(ctx, flock, "counts", rows, func(_, _ int, x float64) float64 { return m.value(x) })
	if err = cmp.Or(err, table.Counts("counts", math.MaxFloat64, slices.Concat(sums.sums...)...)); err != nil {
		return nil, err
	}
	d := len(columns)
	m.Columns, m.Intercept = columns, priors(sums.rows)
	for class, row := range sums.sums {
		all, weights := total(row)+alpha*float64(d), make([]float64, d)
		for j, n := range row {
			if !m.Binary {
				weights[j] = math.Log((n + alpha) / all)
				continue
			}
			with, without := n+alpha, max(sums.rows[class]-n, 0)+alpha
			weights[j] = math.Log(with / without)
			m.Intercept[class] += math.Log(without / (with + without))
		}
		m.Weights = append(m.Weights, weights)
	}
	// Another processor may round logarithms differently in the last bit.
	flat, err := settle(ctx, flock, "model", slices.Concat(append([][]float64{m.Intercept}, m.Weights...)...))
	if err != nil {
		return nil, fmt.Errorf("learn: comparing logarithms: %w", err)
	}
	k := copy(m.Intercept, flat)
	for class := range m.Weights {
		copy(m.Weights[class], flat[k+class*d:])
	}
	return m, m.check()
}

func checkCounts(b *table.Batch) error {
	if b == nil {
		return nil
	}
	for _, c := range b.Columns {
		if i := slices.IndexFunc(c.Numbers[:min(len(c.Numbers), b.Rows)], func(x float64) bool { return x < 0 }); i >= 0 {
			return fmt.Errorf("learn: column %q has %v in row %d; multinomial naive Bayes takes counts, none negative (do not standardize them)", c.Name, c.Numbers[i], b.Key(i))
		}
	}
	return nil
}

// Outputs is the number of classes.
func (m *CountNBModel) Outputs() int { return len(m.Intercept) }

// Predict appends a probability for each class for each row.
func (m *CountNBModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	if m.Binary {
		counted := &table.Batch{Rows: features.Rows}
		for j, name := range m.Columns {
			values, err := numbers(features, name, j)
			if err != nil {
				return dst, err
			}
			c := table.Column{Name: name, Numbers: make([]float64, len(values))}
			for i, x := range values {
				c.Numbers[i] = m.value(x)
			}
			counted.Columns = append(counted.Columns, c)
		}
		features = counted
	}
	return (&LogisticModel{Coefficients: m.Coefficients}).Predict(dst, features)
}

func (m *CountNBModel) check() error {
	if len(m.Intercept) < 2 {
		return fmt.Errorf("%d classes; want 2 or more", len(m.Intercept))
	}
	return m.Coefficients.check()
}
