package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/peer/table"
)

const (
	defaultComponents = 10
	// wideColumns is the number of columns above which random search finds the components: the covariance of 1,000
	// columns is 4 MB, and its eigenvectors take a second.
	wideColumns = 1000
	// sketchMore is how many more directions than components a random search has, and sketchRounds how often it
	// refines them. Its result is exact to 1e-6 for a component with 1.5 times the variance of the first component
	// that is left out (Halko et al. 2011).
	sketchMore   = 10
	sketchRounds = 8
)

// PCA finds the directions in which rows of numbers vary most. Standardize columns of different scales first. Up to
// rounding, the result is that of one process with all rows if the variances differ; directions of equal variance are
// not unique.
type PCA struct {
	Components int // 0 is 10, or the number of columns if that is less
	// Randomized starts from random directions: sums have a few times the number of columns instead of its square.
	// With more than 1,000 columns it is always used.
	Randomized bool
	Seed       uint64
}

// PCAModel gives a row's coordinates along the components.
type PCAModel struct {
	Columns []string  `json:"columns"`
	Mean    []float64 `json:"mean"`
	// Components are vectors of length 1 in the order of their variance, the largest first. In each, the entry of the
	// largest size is positive.
	Components [][]float64 `json:"components"`
	Variance   []float64   `json:"variance"`  // of the rows along each component
	Explained  []float64   `json:"explained"` // Variance as shares of the variance of all columns
}

// Outputs is the number of components.
func (m *PCAModel) Outputs() int { return len(m.Components) }

// Predict appends the coordinates of each row.
func (m *PCAModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	p, err := pointsOf(Rows{Features: features}, m.Columns)
	if err != nil {
		return nil, err
	}
	p.from = m.Mean
	p.each(func(_ int, x []float64) {
		for _, component := range m.Components {
			dst = append(dst, floats.Dot(component, x))
		}
	})
	return dst, nil
}

func (m *PCAModel) check() error {
	k := len(m.Components)
	if len(m.Mean) != len(m.Columns) || k == 0 || len(m.Variance) != k || len(m.Explained) != k {
		return fmt.Errorf("%d components, %d variances and a mean of %d values for %d columns", k, len(m.Variance), len(m.Mean), len(m.Columns))
	}
	for i, c := range m.Components {
		if len(c) != len(m.Columns) {
			return fmt.Errorf("component %d has %d values for %d columns", i, len(c), len(m.Columns))
		}
	}
	return checkFinite(append(m.Components[:k:k], m.Mean, m.Variance, m.Explained)...)
}

// Fit makes a *PCAModel.
func (l PCA) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	p, local := pointsToFit(rows)
	d := len(p.names)
	l.Components = cmp.Or(l.Components, min(defaultComponents, d))
	if local == nil && (l.Components < 1 || l.Components > d) {
		local = fmt.Errorf("%w: %d components of %d columns; want from 1 to %d", ErrSettings, l.Components, d, d)
	}
	if err := agree(ctx, flock, local, "pca", l, p.names); err != nil {
		return nil, err
	}
	weight, mean, scatter, err := p.moments(ctx, flock)
	if err != nil {
		return nil, fmt.Errorf("learn: PCA: %w", err)
	}
	p.from = mean
	f := pcaFit{PCA: l, points: p, flock: flock}
	find := f.exact
	if l.Randomized || d > wideColumns {
		find = f.sketch
	}
	flat, err := find(ctx)
	if err != nil {
		return nil, fmt.Errorf("learn: PCA: %w", err)
	}
	if flat, err = settle(ctx, flock, "model", flat); err != nil {
		return nil, fmt.Errorf("learn: PCA: %w", err)
	}
	m := &PCAModel{Columns: slices.Clone(p.names), Mean: mean}
	for i := range l.Components {
		variance := max(flat[i], 0) / weight
		m.Variance = append(m.Variance, variance)
		m.Explained = append(m.Explained, ratio(variance, scatter/weight))
		m.Components = append(m.Components, flat[l.Components+i*d:l.Components+(i+1)*d])
	}
	return m, m.check()
}

// pcaFit is one fit; points are measured from the mean of all rows.
type pcaFit struct {
	PCA
	points points
	flock  table.Flock
}

// eachWeighted calls do for each row, multiplied by the square root of its weight.
func (f pcaFit) eachWeighted(do func(x blas64.Vector)) {
	f.points.each(func(row int, x []float64) {
		if w := f.points.rows.weight(row); w != 1 {
			floats.Scale(math.Sqrt(w), x)
		}
		do(blas64.Vector{N: len(x), Data: x, Inc: 1})
	})
}

// exact returns the eigenvalues and eigenvectors of the scatter matrix, which is one sum. It multiplies columns in
// place, a block of rows at a time.
func (f pcaFit) exact(ctx context.Context) ([]float64, error) {
	p, d := f.points, len(f.points.columns)
	scatter := mat.NewSymDense(d, nil)
	block := blas64.General{Rows: d, Stride: laidRows, Data: make([]float64, d*laidRows)}
	for first := 0; first < p.rows.count(); first += laidRows {
		block.Cols = min(laidRows, p.rows.count()-first)
		for j, column := range p.columns {
			for i, x := range column[first : first+block.Cols] {
				block.Data[j*laidRows+i] = (x - p.from[j]) * math.Sqrt(p.rows.weight(first+i))
			}
		}
		blas64.Syrk(blas.NoTrans, 1, block, 1, scatter.RawSymmetric())
	}
	if err := f.sumOf(ctx, "covariance", scatter); err != nil {
		return nil, err
	}
	return components(scatter, f.Components, nil)
}

// sketch returns the eigenvalues and eigenvectors of the rows projected on a few directions with most of the
// variance. The directions start at random, and each product with the scatter matrix turns them towards more
// variance.
func (f pcaFit) sketch(ctx context.Context) ([]float64, error) {
	d := len(f.points.columns)
	k := min(f.Components+sketchMore, d)
	chance := rand.New(rand.NewPCG(f.Seed, uint64(d)))
	basis := mat.NewDense(d, k, nil)
	basis.Apply(func(int, int, float64) float64 { return chance.NormFloat64() }, basis)
	along := make([]float64, k)
	project := func(x blas64.Vector) blas64.Vector {
		y := blas64.Vector{N: k, Data: along, Inc: 1}
		blas64.Gemv(blas.Trans, 1, basis.RawMatrix(), x, 0, y)
		return y
	}
	for round := range sketchRounds {
		product := blas64.General{Rows: d, Cols: k, Stride: k, Data: make([]float64, d*k)}
		f.eachWeighted(func(x blas64.Vector) { blas64.Ger(1, x, project(x), product) })
		sum, _, err := f.flock.Sum(ctx, fmt.Sprintf("sketch%d", round), product.Data)
		if err != nil {
			return nil, err
		}
		var qr mat.QR
		qr.Factorize(mat.NewDense(d, k, sum))
		var q mat.Dense
		qr.QTo(&q)
		flat, err := settle(ctx, f.flock, fmt.Sprintf("basis%d", round), mat.DenseCopyOf(q.Slice(0, d, 0, k)).RawMatrix().Data)
		if err != nil {
			return nil, err
		}
		basis = mat.NewDense(d, k, flat)
	}
	scatter := mat.NewSymDense(k, nil)
	f.eachWeighted(func(x blas64.Vector) { blas64.Syr(1, project(x), scatter.RawSymmetric()) })
	if err := f.sumOf(ctx, "covariance", scatter); err != nil {
		return nil, err
	}
	return components(scatter, f.Components, basis)
}

// sumOf replaces a matrix by the sum of all members' matrices. It sends one half, since the matrix is symmetric.
func (f pcaFit) sumOf(ctx context.Context, name string, s *mat.SymDense) error {
	raw := s.RawSymmetric()
	var upper []float64
	for i := range raw.N {
		upper = append(upper, raw.Data[i*raw.Stride+i:i*raw.Stride+raw.N]...)
	}
	upper, _, err := f.flock.Sum(ctx, name, upper)
	if err != nil {
		return err
	}
	for i := range raw.N {
		copy(raw.Data[i*raw.Stride+i:i*raw.Stride+raw.N], upper)
		upper = upper[raw.N-i:]
	}
	return nil
}

// components returns the k largest eigenvalues, then their vectors, converted from the coordinates of basis unless
// that is nil.
func components(scatter *mat.SymDense, k int, basis *mat.Dense) ([]float64, error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(scatter, true) {
		return nil, errors.New("the eigenvectors of the covariance are not found; are there values beyond 1e150?")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	if basis != nil {
		var product mat.Dense
		product.Mul(basis, &vectors)
		vectors = product
	}
	values := eigen.Values(nil)
	slices.Reverse(values) // they were ascending
	flat, d := values[:k:k], len(values)
	for i := range k {
		v := mat.Col(nil, d-1-i, &vectors)
		largest := slices.MaxFunc(v, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
		if largest < 0 {
			floats.Scale(-1, v)
		}
		flat = append(flat, v...)
	}
	return flat, nil
}
