package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// defaultSmoothing times the largest variance is added to each variance.
const defaultSmoothing = 1e-9

// GaussianNB is naive Bayes for numbers with a normal distribution within each class. It takes two sums, of classes ×
// columns numbers and of twice as many.
type GaussianNB struct {
	// Smoothing times the largest variance of a column is added to each variance, so that no variance is 0. 0 means
	// 1e-9, scikit-learn's default.
	Smoothing float64 `json:"smoothing"`
}

// Fit gives a *GaussianNBModel.
func (l GaussianNB) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	columns, err := begin(ctx, flock, nil, rows, l)
	if err := cmp.Or(err, wantClasses(rows)); err != nil {
		return nil, err
	}
	if !(l.Smoothing >= 0) {
		return nil, fmt.Errorf("learn: a smoothing of %v; want a number that is not negative", l.Smoothing)
	}
	first, err := sumsByClass(ctx, flock, "means", rows, func(_, _ int, x float64) float64 { return x })
	if err != nil {
		return nil, err
	}
	// The second sum is of deviations from the first mean and of their squares: with large numbers as they are,
	// digits would cancel. The deviations also correct the mean if a member has left since the first sum.
	mean, d := first.means(), len(columns)
	rest := func(class, j int, x float64) float64 { return x - mean[class][j] }
	sums, err := sumsByClass(ctx, flock, "variances", rows, rest,
		func(class, j int, x float64) float64 { return rest(class, j, x) * rest(class, j, x) })
	if err != nil {
		return nil, err
	}
	m := &GaussianNBModel{Columns: columns, Rows: sums.rows, Means: mean}
	for class, rests := range sums.means() {
		variances := make([]float64, d)
		for j, off := range rests[:d] {
			m.Means[class][j] += off
			variances[j] = max(rests[d+j]-float64(off*off), 0)
		}
		m.Variances = append(m.Variances, variances)
	}
	return m, cmp.Or(m.smooth(cmp.Or(l.Smoothing, defaultSmoothing)), m.check())
}

// smooth adds part times the largest variance of all classes and columns to each variance.
func (m *GaussianNBModel) smooth(part float64) error {
	all, most := total(m.Rows), 0.0
	for j := range m.Columns {
		mean, variance := 0.0, 0.0
		for class, n := range m.Rows {
			mean += float64(n * m.Means[class][j] / all)
		}
		for class, n := range m.Rows {
			off := m.Means[class][j] - mean
			variance += float64(n * (m.Variances[class][j] + float64(off*off)) / all)
		}
		most = max(most, variance)
	}
	if most == 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		return fmt.Errorf("learn: Gaussian naive Bayes: the largest variance of a column is %v; want columns that are not constant, and not too large to add up", most)
	}
	for _, variances := range m.Variances {
		for j := range variances {
			variances[j] += float64(part * most)
		}
	}
	return nil
}

// GaussianNBModel has the normal distribution of each column in each class.
type GaussianNBModel struct {
	Columns   []string    `json:"columns"`
	Rows      []float64   `json:"rows"` // weight of each class's rows, whose share is the prior
	Means     [][]float64 `json:"means"`
	Variances [][]float64 `json:"variances"` // smoothed
}

// Outputs is the number of classes.
func (m *GaussianNBModel) Outputs() int { return len(m.Rows) }

// Predict appends a probability for each class for each row.
func (m *GaussianNBModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	k, first := len(m.Rows), len(dst)
	start := priors(m.Rows)
	for class, variances := range m.Variances {
		for _, v := range variances {
			start[class] -= math.Log(2*math.Pi*v) / 2
		}
	}
	dst = slices.Grow(dst, k*features.Rows)
	for range features.Rows {
		dst = append(dst, start...)
	}
	out := dst[first:]
	for j, name := range m.Columns {
		values, err := numbers(features, name, j)
		if err != nil {
			return dst[:first], err
		}
		for class := range k {
			mean, half := m.Means[class][j], 0.5/m.Variances[class][j]
			for i, x := range values {
				out[i*k+class] -= min((x-mean)*(x-mean)*half, -noPrior) // finite: with all infinite there were no probabilities
			}
		}
	}
	for p := range slices.Chunk(out, k) {
		softmax(p)
	}
	return dst, nil
}

func (m *GaussianNBModel) check() error {
	if len(m.Rows) < 2 || len(m.Means) != len(m.Rows) || len(m.Variances) != len(m.Rows) {
		return fmt.Errorf("%d classes, %d rows of means, %d of variances", len(m.Rows), len(m.Means), len(m.Variances))
	}
	for class, variances := range m.Variances {
		if len(variances) != len(m.Columns) || len(m.Means[class]) != len(m.Columns) || slices.ContainsFunc(variances, func(v float64) bool { return !(v > 0) }) {
			return fmt.Errorf("class %d does not have a mean and a variance above 0 of each of %d columns", class, len(m.Columns))
		}
	}
	return checkFinite(append(slices.Concat(m.Means, m.Variances), m.Rows)...)
}

// noPrior is the logarithm of the prior of a class without rows: JSON has no infinity.
const noPrior = -1e300

// priors are the logarithms of the classes' shares of the rows.
func priors(rows []float64) []float64 {
	logs, all := make([]float64, len(rows)), total(rows)
	for class, n := range rows {
		if logs[class] = noPrior; n > 0 {
			logs[class] = math.Log(n / all)
		}
	}
	return logs
}

// classSums are sums over the flock's rows of each class.
type classSums struct {
	rows []float64   // the weight of each class's rows
	sums [][]float64 // by class and column
}

// sumsByClass adds up, for each class and column, what each function of ofs makes of the values: first the sums of
// the first function for all columns, then those of the next.
func sumsByClass(ctx context.Context, flock table.Flock, name string, rows Rows, ofs ...func(class, column int, x float64) float64) (classSums, error) {
	k, columns := len(rows.Classes), rows.Features.Columns
	d := len(columns) * len(ofs)
	flat := make([]float64, k*(d+1))
	for i, y := range rows.Target {
		flat[int(y)*(d+1)+d] += rows.weight(i)
	}
	for f, of := range ofs {
		for j, c := range columns {
			place := f*len(columns) + j
			for i, x := range c.Numbers {
				class := int(rows.Target[i])
				flat[class*(d+1)+place] += rows.weight(i) * of(class, j, x)
			}
		}
	}
	flat, _, err := flock.Sum(ctx, name, flat)
	if err != nil {
		return classSums{}, fmt.Errorf("learn: summing by class: %w", err)
	}
	var s classSums
	for class := range k {
		part := flat[class*(d+1) : (class+1)*(d+1)]
		s.rows, s.sums = append(s.rows, part[d]), append(s.sums, part[:d:d])
	}
	return s, cmp.Or(checkWeights(name, s.rows...), wantTwo(rows.Classes, s.rows))
}

// means are the sums divided by the weight of each class's rows; 0 for a class without rows.
func (s classSums) means() [][]float64 {
	var means [][]float64
	for class, sums := range s.sums {
		row := make([]float64, len(sums))
		for j, sum := range sums {
			row[j] = ratio(sum, s.rows[class])
		}
		means = append(means, row)
	}
	return means
}
