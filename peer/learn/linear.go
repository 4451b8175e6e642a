package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ErrSingular: columns are linearly dependent, so their weights are not unique.
var ErrSingular = errors.New("learn: columns are linearly dependent; drop one, or use ridge regression")

const (
	// maxNormal bounds the columns of normal equations, whose sum has 4 bytes times the squared number of columns.
	maxNormal = 4096
	// leastPivot is the least part of a column's variance that earlier columns must leave unexplained; less is
	// rounding.
	leastPivot = 1e-10
	// productRows are multiplied at once: they stay in the cache.
	productRows = 256
	// edge is where a predicted number bends towards 0 or 1, so that it stays a probability and keeps its order.
	edge = 0.01
)

// Linear is linear regression by the normal equations: one sum of columns²/2 numbers. The zero value is least squares
// without a penalty. For classes, the target is 1 for a row of the class and 0 for other rows.
type Linear struct {
	// Ridge times the sum of the squared weights is added to the sum of the squared errors; the intercept is not
	// penalized. scikit-learn's Ridge has 1.
	Ridge float64 `json:"ridge"`
}

// Fit returns a *LinearModel, or a *LinearClassModel for classes. Linearly dependent columns are ErrSingular if Ridge
// is 0; a constant column gets a weight of 0.
func (l Linear) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	m, err := newMatrix(ctx, flock, rows, l)
	if err != nil {
		return nil, err
	}
	if !(l.Ridge >= 0) {
		return nil, fmt.Errorf("learn: a ridge of %v; want a number that is not negative", l.Ridge)
	}
	if len(m.columns) > maxNormal {
		return nil, fmt.Errorf("learn: linear regression of %d columns; it takes up to %d: hash or drop some", len(m.columns), maxNormal)
	}
	k := 1
	if rows.Classes != nil {
		if k, err = outputs(ctx, flock, m, rows); err != nil {
			return nil, err
		}
	}
	n := &normal{m, k, l.Ridge, wanted(rows, k)}
	c, err := n.solve(ctx, flock)
	switch {
	case err != nil:
		return nil, err
	case rows.Classes == nil:
		return &LinearModel{c}, nil
	}
	return &LinearClassModel{c}, nil
}

// wanted returns k numbers for each row: the target, or 1 for its class (class 1 of two) and 0 for others.
func wanted(rows Rows, k int) []float64 {
	if k == 1 { // classes are 0 and 1
		return slices.Clone(rows.Target)
	}
	want := make([]float64, k*rows.count())
	for i, y := range rows.Target {
		want[i*k+int(y)] = 1
	}
	return want
}

// normal has normal equations with k right sides.
type normal struct {
	*matrix
	k     int
	ridge float64
	want  []float64 // rows × k
}

// solve gives the coefficients, the same bytes at all members.
func (n *normal) solve(ctx context.Context, flock table.Flock) (Coefficients, error) {
	d := len(n.columns)
	means := make([]float64, n.k)
	for i, y := range n.want {
		means[i%n.k] += n.weight(i/n.k) * y
	}
	means, _, err := flock.Sum(ctx, "target", means)
	if err != nil {
		return Coefficients{}, fmt.Errorf("learn: summing the target: %w", err)
	}
	floats.Scale(1/n.total, means)
	for i := range n.want { // a large mean would cost digits
		n.want[i] -= means[i%n.k]
	}
	sums, _, err := flock.Sum(ctx, "products", n.products())
	if err != nil {
		return Coefficients{}, fmt.Errorf("learn: summing the normal equations: %w", err)
	}
	n.total = sums[len(sums)-1]
	if err := checkWeights("products", n.total); err != nil {
		return Coefficients{}, err
	}
	n.centre(sums, means)
	column, parameters := n.parameters(sums, means)
	// Another processor may round differently, and even find no solution.
	values, err := settle(ctx, flock, "model", append(parameters, float64(column)))
	if err != nil {
		return Coefficients{}, fmt.Errorf("learn: comparing the solution: %w", err)
	}
	if column := int(values[len(values)-1]); column >= 0 && column < d {
		return Coefficients{}, fmt.Errorf("%w (column %q)", ErrSingular, n.columns[column])
	}
	c := n.coefficients(n.k, values[:n.k*(d+1)])
	return c, c.check()
}

// products returns sums over this member's rows: the lower triangle of the columns' products, row by row, then each
// column's products with the right sides, and then the sums of the columns, of the right sides, and of the weights.
func (n *normal) products() []float64 {
	d, wide := len(n.columns), len(n.dense)
	full := make([]float64, d*d) // products of the differences from base
	sums := make([]float64, d)   // sums of the differences from base
	right := mat.NewDense(max(d, 1), n.k, nil)
	weights := 0.0
	for i := range n.rows {
		w := n.weight(i)
		weights += w
		row := n.values[i*wide : (i+1)*wide]
		index, delta := n.index[n.start[i]:n.start[i+1]], n.delta[n.start[i]:n.start[i+1]]
		want := n.want[i*n.k : (i+1)*n.k]
		for c, j := range n.dense {
			sums[j] += w * row[c]
			floats.AddScaled(right.RawRowView(j), w*row[c], want)
		}
		for e, j := range index {
			x := w * delta[e]
			sums[j] += x
			floats.AddScaled(right.RawRowView(int(j)), x, want)
			into := full[int(j)*d : int(j+1)*d]
			for f, other := range index[:e+1] {
				into[other] += x * delta[f]
			}
			for c, other := range n.dense {
				into[other] += x * row[c]
			}
		}
	}
	n.denseProducts(full)
	// Now add base, which a column has in all rows.
	wanted := make([]float64, n.k)
	for i, y := range n.want {
		wanted[i%n.k] += n.weight(i/n.k) * y
	}
	for j := range d {
		floats.AddScaled(right.RawRowView(j), n.base[j], wanted)
	}
	triangle := make([]float64, 0, d*(d+1)/2+d*n.k)
	for j := range d {
		for i := range j + 1 {
			product := full[j*d+i]
			if i != j { // the product was added at (i, j) or at (j, i), depending on which column came first
				product += full[i*d+j]
			}
			triangle = append(triangle, product+n.base[j]*sums[i]+n.base[i]*sums[j]+weights*n.base[i]*n.base[j])
		}
	}
	floats.AddScaled(sums, weights, n.base)
	return slices.Concat(triangle, right.RawMatrix().Data[:d*n.k], sums, wanted, []float64{weights})
}

// denseProducts adds the products of the dense columns to the lower triangle of full.
func (n *normal) denseProducts(full []float64) {
	d, wide := len(n.columns), len(n.dense)
	if wide == 0 {
		return
	}
	block := blas64.General{Rows: wide, Cols: productRows, Stride: productRows, Data: make([]float64, wide*productRows)}
	products := blas64.Symmetric{N: wide, Stride: wide, Data: make([]float64, wide*wide), Uplo: blas.Lower}
	for first := 0; first < n.rows; first += productRows {
		block.Cols = min(productRows, n.rows-first)
		for r := range block.Cols {
			root := math.Sqrt(n.weight(first + r))
			for c, x := range n.values[(first+r)*wide : (first+r+1)*wide] {
				block.Data[c*productRows+r] = root * x
			}
		}
		blas64.Syrk(blas.NoTrans, 1, block, 1, products)
	}
	for c, j := range n.dense {
		for b, i := range n.dense[:c+1] {
			full[j*d+i] += products.Data[c*wide+b]
		}
	}
}

// centre moves the products to the means of the rows that they sum. These differ from the earlier means if a member
// has left since, and otherwise by rounding.
func (n *normal) centre(sums, means []float64) {
	d := len(n.columns)
	right := sums[d*(d+1)/2:]
	columns, wanted := right[d*n.k:d*(n.k+1)], right[d*(n.k+1):d*(n.k+1)+n.k]
	for j, x := range columns {
		floats.AddScaled(sums[j*(j+1)/2:(j+1)*(j+2)/2], -x/n.total, columns[:j+1])
		floats.AddScaled(right[j*n.k:(j+1)*n.k], -x/n.total, wanted)
	}
	floats.AddScaled(means, 1/n.total, wanted)
	floats.Scale(1/n.total, columns)
}

// parameters solves the equations. column is a column that depends on earlier columns, or -1.
func (n *normal) parameters(sums, means []float64) (column int, parameters []float64) {
	d := len(n.columns)
	parameters = make([]float64, n.k*(d+1))
	for o, mean := range means {
		parameters[o*(d+1)+d] = mean
	}
	if d == 0 {
		return -1, parameters
	}
	left := mat.NewSymDense(d, nil)
	for j := range d {
		for i := range j + 1 {
			left.SetSym(i, j, sums[j*(j+1)/2+i]/n.total)
		}
		if n.constant(j) {
			left.SetSym(j, j, 1)
		} else {
			left.SetSym(j, j, left.At(j, j)+n.ridge/(n.scale[j]*n.scale[j])/n.total)
		}
	}
	var factors mat.Cholesky
	if column := weakest(&factors, left); column >= 0 {
		return column, parameters
	}
	right, solution := mat.NewDense(d, n.k, sums[d*(d+1)/2:][:d*n.k]), mat.NewDense(d, n.k, nil)
	right.Scale(1/n.total, right)
	if err := factors.SolveTo(solution, right); err != nil && !errors.As(err, new(mat.Condition)) {
		return 0, parameters
	}
	columns := sums[d*(d+1)/2+d*n.k:][:d] // their means, after centre
	for o := range n.k {
		for j := range d {
			parameters[o*(d+1)+j] = solution.At(j, o)
			parameters[o*(d+1)+d] -= solution.At(j, o) * columns[j]
		}
	}
	return -1, parameters
}

// weakest factorizes the matrix. It returns the column whose variance earlier columns explain most fully, or -1 if
// none is below leastPivot.
func weakest(factors *mat.Cholesky, left *mat.SymDense) int {
	d := left.SymmetricDim()
	if !factors.Factorize(left) {
		raised := mat.NewSymDense(d, nil)
		raised.CopySym(left)
		for j := range d {
			raised.SetSym(j, j, left.At(j, j)*(1+leastPivot/1000))
		}
		if !factors.Factorize(raised) {
			return d - 1
		}
	}
	var lower mat.TriDense
	factors.LTo(&lower)
	worst, column := leastPivot, -1
	for j := range d {
		if part := lower.At(j, j) * lower.At(j, j) / left.At(j, j); part < worst {
			worst, column = part, j
		}
	}
	return column
}

// LinearModel predicts a number by a weighted sum of columns.
type LinearModel struct{ Coefficients }

// Outputs is 1.
func (m *LinearModel) Outputs() int { return 1 }

// Predict appends a number for each row.
func (m *LinearModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	return m.apply(dst, features)
}

func (m *LinearModel) check() error {
	if len(m.Intercept) != 1 {
		return fmt.Errorf("%d outputs; want 1", len(m.Intercept))
	}
	return m.Coefficients.check()
}

// LinearClassModel gives probabilities of classes that are linear in the columns, except near 0 and 1, where they
// bend. One row of weights gives the probability of class 1 of two.
type LinearClassModel struct{ Coefficients }

// Outputs is the number of classes.
func (m *LinearClassModel) Outputs() int { return max(len(m.Intercept), 2) }

// Predict appends a probability for each class for each row.
func (m *LinearClassModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	lines, err := m.apply(nil, features)
	if err != nil {
		return dst, err
	}
	for i, x := range lines {
		switch {
		case x < edge:
			lines[i] = edge * math.Exp(x/edge-1)
		case x > 1-edge:
			lines[i] = 1 - edge*math.Exp((1-x)/edge-1)
		}
	}
	k := len(m.Intercept)
	if k == 1 {
		for _, p := range lines {
			dst = append(dst, 1-p, p)
		}
		return dst, nil
	}
	for p := range slices.Chunk(lines, k) {
		sum := total(p)
		for _, x := range p {
			if sum == 0 { // each is too small for a float64
				x, sum = 1, float64(k)
			}
			dst = append(dst, x/sum)
		}
	}
	return dst, nil
}
