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

// Defaults of KMeans.
const (
	defaultClusters   = 8
	defaultIterations = 100
	defaultTolerance  = 1e-4
)

// KMeans divides rows of numbers into clusters, so that each row is near the mean of its cluster. It starts by
// k-means|| (Bahmani et al. 2012) and continues with Lloyd's iterations. Standardize columns of different scales
// first. Seed and the rows' keys decide the initial rows, so up to rounding the result is that of one process with
// all rows, unless a row is within rounding of the border between two clusters. All members see the initial rows,
// about 2·Clusters in each of five rounds.
type KMeans struct {
	Clusters   int     // at most; 0 is 8
	Iterations int     // of Lloyd, at most; 0 is 100
	Tolerance  float64 // bounds the sum of the squared moves of all centers at the end, in mean variances of a column; 0 is 1e-4
	Seed       uint64
}

func (l KMeans) withDefaults() (KMeans, error) {
	l.Clusters, l.Iterations = cmp.Or(l.Clusters, defaultClusters), cmp.Or(l.Iterations, defaultIterations)
	l.Tolerance = cmp.Or(l.Tolerance, defaultTolerance)
	if l.Clusters < 1 || l.Iterations < 1 || !(l.Tolerance > 0) {
		return l, fmt.Errorf("learn: k-means with %d clusters, %d iterations and tolerance %v; want more than 0 of each", l.Clusters, l.Iterations, l.Tolerance)
	}
	return l, nil
}

// KMeansModel gives the index of the cluster of a row, from 0.
type KMeansModel struct {
	Columns []string    `json:"columns"`
	Centers [][]float64 `json:"centers"` // a center for each cluster, with a value for each column
	Sizes   []float64   `json:"sizes"`   // the weight of each cluster's rows in the fit
	// Inertia is the sum of the squared distances of the fitted rows from their centers.
	Inertia    float64 `json:"inertia"`
	Iterations int     `json:"iterations"`
}

// Outputs is 1: the index of a cluster.
func (*KMeansModel) Outputs() int { return 1 }

// Predict appends the index of the cluster whose center is nearest.
func (m *KMeansModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	p, err := pointsOf(Rows{Features: features}, m.Columns)
	if err != nil {
		return nil, err
	}
	p.from = m.Centers[0]
	var c centers
	for _, center := range m.Centers {
		c.add(floats.SubTo(make([]float64, len(center)), center, p.from))
	}
	p.each(func(_ int, x []float64) {
		nearest, _ := c.nearest(x)
		dst = append(dst, float64(nearest))
	})
	return dst, nil
}

func (m *KMeansModel) check() error {
	if len(m.Centers) == 0 || len(m.Sizes) != len(m.Centers) {
		return fmt.Errorf("%d centers and %d sizes", len(m.Centers), len(m.Sizes))
	}
	for i, c := range m.Centers {
		if len(c) != len(m.Columns) {
			return fmt.Errorf("center %d has %d values for %d columns", i, len(c), len(m.Columns))
		}
	}
	return checkFinite(append(m.Centers[:len(m.Centers):len(m.Centers)], m.Sizes, []float64{m.Inertia})...)
}

// centers are the centers of clusters.
type centers struct {
	at    [][]float64
	halfs []float64 // half of the squared norm of each
}

func (c *centers) add(at []float64) {
	c.at, c.halfs = append(c.at, at), append(c.halfs, floats.Dot(at, at)/2)
}

// nearest returns the center nearest to x, the first of several, and its squared distance.
func (c *centers) nearest(x []float64) (index int, squared float64) {
	best := math.Inf(1)
	for i, at := range c.at {
		if gap := c.halfs[i] - floats.Dot(x, at); gap < best {
			index, best = i, gap
		}
	}
	return index, distance2(x, c.at[index])
}

func distance2(x, y []float64) (sum float64) {
	for j, v := range x {
		sum += (v - y[j]) * (v - y[j])
	}
	return sum
}

// Fit makes a *KMeansModel. A cluster that becomes empty gets the row that is farthest from its
// center; if there are fewer distinct rows than clusters, the model has only as many clusters.
func (l KMeans) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	p, local := pointsToFit(rows)
	l, wrong := l.withDefaults()
	if err := agree(ctx, flock, cmp.Or(wrong, local), "kmeans", l, p.names); err != nil {
		return nil, err
	}
	weight, mean, scatter, err := p.moments(ctx, flock)
	if err != nil {
		return nil, fmt.Errorf("learn: k-means: %w", err)
	}
	p.from = mean
	fit := kmeansFit{KMeans: l, points: p, flock: flock}
	c, err := fit.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("learn: the start of k-means: %w", err)
	}
	m, err := fit.lloyd(ctx, c, l.Tolerance*scatter/weight/float64(len(mean)))
	if err != nil {
		return nil, fmt.Errorf("learn: k-means: %w", err)
	}
	return m, m.check()
}

// kmeansFit is one fit; points are measured from the mean of all rows.
type kmeansFit struct {
	KMeans
	points points
	flock  table.Flock
}

// lloyd moves each center to the mean of its rows, until the sum of the squared moves is at most still.
func (f kmeansFit) lloyd(ctx context.Context, c centers, still float64) (*KMeansModel, error) {
	d := len(f.points.columns)
	for step, done := 0, false; ; step++ {
		k := len(c.at)
		sums := make([]float64, k*(d+1)+1) // for each cluster the sum and the weight of its rows; then the inertia
		f.points.each(func(row int, x []float64) {
			w := f.points.rows.weight(row)
			i, off := c.nearest(x)
			floats.AddScaled(sums[i*(d+1):i*(d+1)+d], w, x)
			sums[i*(d+1)+d] += w
			sums[k*(d+1)] += w * off
		})
		sums, _, err := f.flock.Sum(ctx, fmt.Sprintf("lloyd%d", step), sums)
		if err != nil {
			return nil, err
		}
		if done {
			return f.model(c, sums, step), nil
		}
		var (
			next  centers
			moved float64
			empty []int
		)
		for i, at := range c.at {
			sum, w := sums[i*(d+1):i*(d+1)+d], sums[i*(d+1)+d]
			to := at
			if w > 0 {
				to = make([]float64, d)
				for j, s := range sum {
					to[j] = s / w
				}
			} else {
				empty = append(empty, i)
			}
			moved += distance2(at, to)
			next.add(to)
		}
		if len(empty) > 0 {
			filled, err := f.fill(ctx, &next, c, empty, step)
			if err != nil {
				return nil, err
			}
			moved += filled
		}
		c, done = next, moved <= still || step+1 >= f.Iterations
	}
}

// fill moves centers without rows to the rows that are farthest from their centers. It returns the sum of these rows'
// squared distances, or 0 if each row is at a center.
func (f kmeansFit) fill(ctx context.Context, next *centers, c centers, empty []int, step int) (far float64, err error) {
	farthest := least{most: len(empty)}
	f.points.each(func(row int, x []float64) {
		if _, off := c.nearest(x); f.points.rows.weight(row) > 0 && off > 0 {
			farthest.offer(-off, x)
		}
	})
	if err := farthest.gatherAll(ctx, f.flock, fmt.Sprintf("farthest%d", step), len(f.points.columns)); err != nil {
		return 0, err
	}
	for n, r := range farthest.list {
		i := empty[n]
		next.at[i], next.halfs[i] = r.point, floats.Dot(r.point, r.point)/2
		far -= r.rank
	}
	return far, nil
}

// model makes the model, which is the same at all members since it follows from sums by divisions.
func (f kmeansFit) model(c centers, sums []float64, steps int) *KMeansModel {
	d := len(f.points.columns)
	m := &KMeansModel{Columns: slices.Clone(f.points.names), Inertia: sums[len(sums)-1], Iterations: steps}
	for i, at := range c.at {
		if w := sums[i*(d+1)+d]; w > 0 {
			m.Sizes = append(m.Sizes, w)
			m.Centers = append(m.Centers, floats.AddTo(make([]float64, d), at, f.points.from))
		}
	}
	return m
}
