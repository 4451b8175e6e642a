package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Defaults of a descent, for settings that are 0.
const (
	descentTolerance  = 1e-5
	descentIterations = 1000
)

// Logistic is logistic regression, or softmax regression with more than two classes. It minimizes the mean log loss
// plus a penalty of the weights by L-BFGS, with a few sums of classes × (columns + 1) numbers each. The zero value is
// scikit-learn's default.
type Logistic struct {
	// C is the strength of the data against the penalty. The objective is C times the sum of the rows' losses, plus
	// (1-L1Ratio)/2 times the squared weights, plus L1Ratio times their absolute values. 0 means 1; the intercepts
	// are not penalized.
	C float64 `json:"c"`
	// L1Ratio is the part of the penalty that sets weights to 0, from 0 to 1 (elastic net).
	L1Ratio float64 `json:"l1_ratio"`
	// Tolerance ends the search when no entry of the gradient is larger. The gradient is that of the mean loss by the
	// weights of standardized columns; 0 means 1e-5.
	Tolerance float64 `json:"tolerance"`
	// Iterations is the largest number of iterations; 0 is 1000.
	Iterations int `json:"iterations"`
}

// Fit gives a *LogisticModel.
func (l Logistic) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	m, err := newMatrix(ctx, flock, rows, l)
	if err != nil {
		return nil, err
	}
	k, err := outputs(ctx, flock, m, rows)
	if err != nil {
		return nil, err
	}
	loss := logLoss
	if k > 1 {
		loss = softmaxLoss
	}
	d := descent{l.C, l.L1Ratio, l.Tolerance, l.Iterations}
	c, end, err := d.run(ctx, flock, m, k, rows.Target, loss, 0.25)
	if err != nil {
		return nil, err
	}
	return &LogisticModel{c, end}, nil
}

// outputs counts the classes over the flock, and returns how many rows of weights tell them apart: one for two
// classes, else one for each class.
func outputs(ctx context.Context, flock table.Flock, m *matrix, rows Rows) (int, error) {
	if err := wantClasses(rows); err != nil {
		return 0, err
	}
	counts := make([]float64, len(rows.Classes))
	for i, y := range rows.Target {
		counts[int(y)] += m.weight(i)
	}
	counts, _, err := flock.Sum(ctx, "classes", counts)
	if err != nil {
		return 0, fmt.Errorf("learn: counting classes: %w", err)
	}
	if err := cmp.Or(checkWeights("classes", counts...), wantTwo(rows.Classes, counts)); err != nil {
		return 0, err
	}
	if len(counts) == 2 {
		return 1, nil
	}
	return len(counts), nil
}

// lossFunc returns the loss of a row of a class, and replaces the margins by the derivatives of the loss by them.
type lossFunc func(margins []float64, class int) float64

// logLoss is the loss of one margin, the logarithm of the odds of class 1.
func logLoss(margins []float64, class int) float64 {
	margin := margins[0]
	// With e = exp(-|margin|) the unlikelier class has probability e/(1+e).
	e := math.Exp(-math.Abs(margin))
	p := e / (1 + e)
	loss := math.Log(1 + e) // Log1p takes twice as long, and e below 1e-16 is no loss
	if margin > 0 {
		p = 1 - p
	}
	if class == 1 {
		margins[0] = p - 1
		return loss + max(-margin, 0)
	}
	margins[0] = p
	return loss + max(margin, 0)
}

// softmaxLoss is the loss of one margin for each class.
func softmaxLoss(margins []float64, class int) float64 {
	own := margins[class]
	loss := softmax(margins) - own
	margins[class]--
	return loss
}

// descent minimizes the loss of the flock's rows plus a penalty of the weights.
type descent struct {
	c, l1Ratio, tolerance float64
	iterations            int
}

func (d descent) check() error {
	if !(d.c == 0 || d.c >= 1/maxNumber) || !(d.l1Ratio >= 0 && d.l1Ratio <= 1) || !(d.tolerance >= 0) || d.iterations < 0 {
		return fmt.Errorf("learn: C %v, L1Ratio %v, tolerance %v, %d iterations: want none negative, L1Ratio up to 1, and C of 1e-75 or more",
			d.c, d.l1Ratio, d.tolerance, d.iterations)
	}
	return nil
}

// run returns coefficients of k outputs. curvature bounds the second derivative of the loss by a margin.
func (d descent) run(ctx context.Context, flock table.Flock, m *matrix, k int, target []float64, loss lossFunc, curvature float64) (Coefficients, Descent, error) {
	if err := d.check(); err != nil {
		return Coefficients{}, Descent{}, err
	}
	width := len(m.columns) + 1
	l1, l2 := make([]float64, k*width), make([]float64, k*width)
	tolerance := cmp.Or(d.tolerance, descentTolerance)
	search := minimum{iterations: cmp.Or(d.iterations, descentIterations), curvature: make([]float64, k*width)}
	for i := range l2 {
		if j := i % width; j < width-1 && !m.constant(j) {
			c := cmp.Or(d.c, 1) * m.scale[j]
			l1[i], l2[i] = d.l1Ratio/c, (1-d.l1Ratio)/(c*m.scale[j])
		}
		search.curvature[i] = curvature*m.total + l2[i]
	}
	if d.l1Ratio > 0 {
		search.l1 = l1
	}
	evaluation := 0
	search.value = func(ctx context.Context, parameters []float64) (float64, []float64, error) {
		sums := make([]float64, k*width+2) // the gradient, the loss, the weight of the rows
		m.pass(k, parameters, sums[:k*width], func(row int, margins []float64) {
			weight := m.weight(row)
			sums[k*width] += weight * loss(margins, int(target[row]))
			sums[k*width+1] += weight
			for o := range margins {
				margins[o] *= weight
			}
		})
		evaluation++
		sums, _, err := flock.Sum(ctx, fmt.Sprintf("descent%d", evaluation), sums)
		if err != nil {
			return 0, nil, fmt.Errorf("learn: summing the gradient, evaluation %d: %w", evaluation, err)
		}
		m.total = sums[k*width+1]
		if err := checkWeights(fmt.Sprintf("descent%d", evaluation), m.total); err != nil {
			return 0, nil, err
		}
		search.tolerance = tolerance * m.total
		value, gradient := sums[k*width], sums[:k*width:k*width]
		for i, p := range parameters {
			gradient[i] += float64(l2[i] * p)
			value += float64(float64(l2[i]*p)*p) / 2
		}
		return value, gradient, nil
	}
	parameters, end, err := search.search(ctx)
	if err != nil {
		return Coefficients{}, Descent{}, err
	}
	c := m.coefficients(k, parameters)
	return c, end, c.check()
}
