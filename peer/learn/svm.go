package learn

import (
	"context"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
)

// svmOddsC is the C of the regression that gives the probabilities. It is large, so the penalty is small, but weights
// stay finite even if the classes are separable.
const svmOddsC = 1e4

// LinearSVM is a linear support vector machine. It minimizes the squared hinge loss of the margins plus a penalty of
// the weights by L-BFGS, like Logistic. With more than two classes, each class has a margin against the rest. A
// logistic regression on the same rows makes probabilities of the margins (Platt 1999). The zero value is
// scikit-learn's default, except that the intercept is not penalized.
type LinearSVM struct {
	C          float64 `json:"c"`          // the factor of the sum of the losses; the penalty is half the sum of the squared weights; 0 is 1
	Tolerance  float64 `json:"tolerance"`  // as Logistic's
	Iterations int     `json:"iterations"` // as Logistic's
}

// Fit gives an *SVMModel.
func (l LinearSVM) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	m, err := newMatrix(ctx, flock, rows, l)
	if err != nil {
		return nil, err
	}
	k, err := outputs(ctx, flock, m, rows)
	if err != nil {
		return nil, err
	}
	d := descent{l.C, 0, l.Tolerance, l.Iterations}
	margins, end, err := d.run(ctx, flock, m, k, rows.Target, squaredHinge, 2)
	if err != nil {
		return nil, err
	}
	model := &SVMModel{Margins: margins, Descent: end}
	features, err := model.margins(rows.Features)
	if err != nil {
		return nil, err
	}
	rows.Features = features
	odds, err := (&Logistic{C: svmOddsC}).Fit(ctx, table.Scope(flock, "odds"), rows)
	if err != nil {
		return nil, fmt.Errorf("learn: probabilities of margins: %w", err)
	}
	model.Odds = odds.(*LogisticModel).Coefficients
	return model, nil
}

// squaredHinge is the loss of one margin for class 1 of two, or of one margin for each class.
func squaredHinge(margins []float64, class int) float64 {
	loss := 0.0
	for o, margin := range margins {
		side := -1.0
		if len(margins) == 1 && class == 1 || len(margins) > 1 && class == o {
			side = 1
		}
		short := max(1-side*margin, 0)
		loss += short * short
		margins[o] = -2 * side * short
	}
	return loss
}

// SVMModel has the margins, and the regression that makes probabilities of them.
type SVMModel struct {
	Margins Coefficients `json:"margins"`
	Odds    Coefficients `json:"odds"`
	Descent
}

// Outputs is the number of classes.
func (m *SVMModel) Outputs() int { return max(len(m.Margins.Intercept), 2) }

// Predict appends a probability for each class for each row.
func (m *SVMModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	margins, err := m.margins(features)
	if err != nil {
		return dst, err
	}
	return (&LogisticModel{Coefficients: m.Odds}).Predict(dst, margins)
}

// margins returns the margins as columns "margin 0" and so on, one for each row of weights.
func (m *SVMModel) margins(features *table.Batch) (*table.Batch, error) {
	flat, err := m.Margins.apply(nil, features)
	if err != nil {
		return nil, err
	}
	return columnsOf(flat, len(m.Margins.Intercept), features.Rows, "margin"), nil
}

func (m *SVMModel) check() error {
	if len(m.Odds.Intercept) != len(m.Margins.Intercept) {
		return fmt.Errorf("%d odds of %d margins", len(m.Odds.Intercept), len(m.Margins.Intercept))
	}
	if err := m.Odds.check(); err != nil {
		return err
	}
	return m.Margins.check()
}

// columnsOf makes columns "NAME 0" to "NAME k-1" of rows × k numbers.
func columnsOf(flat []float64, k, rows int, name string) *table.Batch {
	b := &table.Batch{Rows: rows}
	for o := range k {
		c := table.Column{Name: fmt.Sprintf("%s %d", name, o), Numbers: make([]float64, rows)}
		for i := range c.Numbers {
			c.Numbers[i] = flat[i*k+o]
		}
		b.Columns = append(b.Columns, c)
	}
	return b
}
