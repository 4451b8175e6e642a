package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

const (
	// sparseFrom is the share of rows with the same value above which a column stores only the other rows: so columns
	// of a one-hot code cost little.
	sparseFrom = 0.7
	// constantBelow is the deviation, as a part of the mean, below which a column counts as constant: less is
	// rounding.
	constantBelow = 1e-12
	// leastScale is a deviation below which a column counts as constant, so that penalty/deviation² is finite.
	leastScale = 1e-100
)

// matrix has a member's features, standardized by the mean and the deviation over the flock: otherwise digits of
// squared large numbers would cancel, and L-BFGS would need many iterations. A penalty of the original columns is
// divided by deviation². The intercept absorbs the means.
type matrix struct {
	columns []string
	rows    int
	weight  func(row int) float64
	total   float64   // weight of all rows over the flock
	mean    []float64 // over the flock, by column
	scale   []float64 // deviation over the flock, by column; 0 if the column is constant

	dense  []int     // columns with a value in each row of values
	values []float64 // rows × len(dense)
	// A sparse column has the value base, plus delta in some rows: row has entries start[row] to start[row+1] of
	// index (the column) and delta.
	base  []float64
	start []int
	index []int32
	delta []float64
}

// newMatrix begins a fit, finds the means and deviations in two sums, and standardizes.
func newMatrix(ctx context.Context, flock table.Flock, rows Rows, settings any) (*matrix, error) {
	columns, err := begin(ctx, flock, nil, rows, settings)
	if err != nil {
		return nil, err
	}
	m := &matrix{columns: columns, rows: rows.count(), weight: rows.weight}
	if err := m.moments(ctx, flock, rows.Features); err != nil {
		return nil, err
	}
	m.fill(rows.Features)
	return m, nil
}

// begin checks the rows of all members, which must be numbers with a target, and compares columns, classes and
// settings. It returns the names of the columns. local is an error that the learner has found in the rows before.
func begin(ctx context.Context, flock table.Flock, local error, rows Rows, settings any) ([]string, error) {
	local = cmp.Or(local, checkTarget(rows), checkFeatures(rows.Features))
	columns := rows.Features.Names()
	return columns, agree(ctx, flock, local, fmt.Sprintf("%T", settings), settings, columns, rows.Classes)
}

func checkFeatures(b *table.Batch) error {
	if b == nil {
		return errNoFeatures
	}
	for i := range b.Columns {
		if err := checkNumbers(b, &b.Columns[i]); err != nil {
			return err
		}
	}
	return checkSizes(b)
}

// checkSizes returns an error if a column's values are too large to be squared and added up, or if two columns have
// one name.
func checkSizes(b *table.Batch) error {
	for _, c := range b.Columns {
		if i := slices.IndexFunc(c.Numbers, func(x float64) bool { return math.Abs(x) > maxNumber && !missing(x) }); i >= 0 {
			return fmt.Errorf("learn: column %q is %g in row %d, %w", c.Name, c.Numbers[i], b.Key(i), table.ErrNumbers)
		}
	}
	return table.DistinctNames(b.Names())
}

// moments finds the mean and the deviation of each column. The second sum is of differences from the mean that the
// first sum gives, and corrects it: so adding 1e9 to a column changes nothing.
func (m *matrix) moments(ctx context.Context, flock table.Flock, b *table.Batch) error {
	d := len(m.columns)
	sums := make([]float64, d+1)
	for i := range m.rows {
		sums[d] += m.weight(i)
	}
	for j, c := range b.Columns {
		for i, x := range c.Numbers {
			sums[j] += m.weight(i) * x
		}
	}
	sums, _, err := flock.Sum(ctx, "means", sums)
	if err != nil {
		return fmt.Errorf("learn: summing the means: %w", err)
	}
	m.total = sums[d]
	if err := checkWeights("means", m.total); err != nil {
		return err
	}
	rest := make([]float64, 2*d)
	for j, c := range b.Columns {
		first := sums[j] / m.total
		for i, x := range c.Numbers {
			w, off := m.weight(i), x-first
			rest[j] += w * off
			rest[d+j] += w * off * off
		}
	}
	if rest, _, err = flock.Sum(ctx, "deviations", rest); err != nil {
		return fmt.Errorf("learn: summing the deviations: %w", err)
	}
	m.mean, m.scale = make([]float64, d), make([]float64, d)
	for j := range d {
		off := rest[j] / m.total
		m.mean[j] = sums[j]/m.total + off
		m.scale[j] = math.Sqrt(max(rest[d+j]/m.total-float64(off*off), 0))
		if !(m.scale[j] > max(constantBelow*math.Abs(m.mean[j]), leastScale)) {
			m.scale[j] = 0
		}
		if math.IsInf(m.mean[j], 0) || math.IsInf(m.scale[j], 0) || math.IsNaN(m.mean[j]) {
			return fmt.Errorf("learn: column %q has numbers that are %w", m.columns[j], table.ErrNumbers)
		}
	}
	return nil
}

// constant tells whether a column has one value over the flock.
func (m *matrix) constant(column int) bool { return m.scale[column] == 0 }

// standard is the standardized value of a column.
func (m *matrix) standard(column int, x float64) float64 {
	if m.constant(column) {
		return 0
	}
	return (x - m.mean[column]) / m.scale[column]
}

// fill stores the standardized values.
func (m *matrix) fill(b *table.Batch) {
	d := len(m.columns)
	m.base, m.start = make([]float64, d), make([]int, m.rows+1)
	common := make([]float64, d)
	isDense := make([]bool, d)
	for j, c := range b.Columns {
		value, count := majority(c.Numbers)
		if common[j] = value; !m.constant(j) && float64(count) < sparseFrom*float64(m.rows) {
			m.dense, isDense[j] = append(m.dense, j), true
			continue
		}
		m.base[j] = m.standard(j, value)
		for i, x := range c.Numbers {
			if x != value && !m.constant(j) {
				m.start[i+1]++
			}
		}
	}
	for i := range m.rows {
		m.start[i+1] += m.start[i]
	}
	m.index, m.delta = make([]int32, m.start[m.rows]), make([]float64, m.start[m.rows])
	m.values = make([]float64, m.rows*len(m.dense))
	for k, j := range m.dense {
		for i, x := range b.Columns[j].Numbers {
			m.values[i*len(m.dense)+k] = m.standard(j, x)
		}
	}
	next := append([]int(nil), m.start...)
	for j, c := range b.Columns {
		if isDense[j] || m.constant(j) {
			continue
		}
		for i, x := range c.Numbers {
			if x != common[j] {
				m.index[next[i]], m.delta[next[i]] = int32(j), m.standard(j, x)-m.base[j]
				next[i]++
			}
		}
	}
}

// majority returns the value that more than half of the values are equal to, if there is one, and how many are.
func majority(values []float64) (value float64, count int) {
	lead := 0
	for _, x := range values {
		switch {
		case lead == 0:
			value, lead = x, 1
		case x == value:
			lead++
		default:
			lead--
		}
	}
	for _, x := range values {
		if x == value {
			count++
		}
	}
	return value, count
}

// pass goes over the rows once. margins are, for k outputs, intercept[o] plus the row times
// weights[o]; residuals replaces them by what each adds to the gradient by its margin.
// The gradients of weights and intercepts are added to gradient, k × (columns+1), the
// intercept last: the layout of the parameters.
func (m *matrix) pass(k int, parameters, gradient []float64, residuals func(row int, margins []float64)) {
	d, wide := len(m.columns), len(m.dense)
	margins := make([]float64, k)
	offset, dense, denseGradient := make([]float64, k), make([]float64, k*wide), make([]float64, k*wide)
	for o := range k {
		w := parameters[o*(d+1) : (o+1)*(d+1)]
		offset[o] = w[d] + floats.Dot(w[:d], m.base)
		for c, j := range m.dense {
			dense[o*wide+c] = w[j]
		}
	}
	for i := range m.rows {
		row := m.values[i*wide : (i+1)*wide]
		index, delta := m.index[m.start[i]:m.start[i+1]], m.delta[m.start[i]:m.start[i+1]]
		for o := range k {
			w := parameters[o*(d+1) : (o+1)*(d+1)]
			sum := offset[o] + floats.Dot(row, dense[o*wide:(o+1)*wide])
			for e, j := range index {
				sum += delta[e] * w[j]
			}
			margins[o] = sum
		}
		residuals(i, margins)
		for o, r := range margins {
			if r == 0 {
				continue
			}
			g := gradient[o*(d+1) : (o+1)*(d+1)]
			floats.AddScaled(denseGradient[o*wide:(o+1)*wide], r, row)
			for e, j := range index {
				g[j] += r * delta[e]
			}
			g[d] += r
		}
	}
	for o := range k {
		g := gradient[o*(d+1) : (o+1)*(d+1)]
		for c, j := range m.dense {
			g[j] += denseGradient[o*wide+c]
		}
		floats.AddScaled(g[:d], g[d], m.base)
	}
}

// coefficients are parameters (k × columns+1) for the columns as they were given.
func (m *matrix) coefficients(k int, parameters []float64) Coefficients {
	d := len(m.columns)
	c := Coefficients{Columns: m.columns}
	for o := range k {
		weights, intercept := make([]float64, d), parameters[o*(d+1)+d]
		for j := range d {
			if !m.constant(j) {
				weights[j] = parameters[o*(d+1)+j] / m.scale[j]
			}
			intercept -= float64(weights[j] * m.mean[j])
		}
		c.Weights, c.Intercept = append(c.Weights, weights), append(c.Intercept, intercept)
	}
	return c
}
