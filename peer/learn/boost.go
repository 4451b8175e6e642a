package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Boost fits gradient-boosted trees: each tree is a step down the gradient of the loss. The loss is the squared error
// of a number, or the log loss of classes. With more than two classes, each round fits a tree for each class. The
// trees grow by sums of histograms over the flock, and are the same to the last bit however the rows are divided
// among its members.
//
// Columns may be numbers or categories. Missing and infinite numbers go to the side of a split where they gain most.
// The 254 most frequent categories are told apart. Rows need distinct keys only if they are sampled.
type Boost struct {
	Trees   int     // rounds; 0: 100
	Leaves  int     // of a tree, at most; 0: 31
	Depth   int     // of a tree, at most; 0: no bound
	Rate    float64 // part of each step that is taken; 0: 0.1
	MinRows int     // of a leaf; 0: 20
	L2      float64 // added to the weight of each leaf, which keeps its value small
	Rows    float64 // part of the rows that each round is fitted on; 0: all
	Columns float64 // part of the columns that each tree may split by; 0: all
	Seed    uint64  // of what is sampled
}

// categoryL2 is added to L2 for splits by categories: there are so many possible splits that the best one is more
// likely to be best by chance.
const categoryL2 = 10

// Fit grows the trees.
func (s Boost) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	s.Trees, s.Leaves, s.MinRows = cmp.Or(s.Trees, 100), cmp.Or(s.Leaves, 31), cmp.Or(s.MinRows, 20)
	s.Rate = cmp.Or(s.Rate, 0.1)
	if s.Trees < 0 || s.Leaves < 1 || s.Depth < 0 || s.MinRows < 0 || !(s.L2 >= 0) || !(s.Rate > 0) || !isShare(s.Rows) || !isShare(s.Columns) {
		return nil, fmt.Errorf("learn: boosting with %+v: a setting is out of range", s)
	}
	b, err := binRows(ctx, flock, rows, s)
	if err != nil {
		return nil, err
	}
	f, err := newBoosting(ctx, s, flock, b, rows)
	if err != nil {
		return nil, err
	}
	for round := range s.Trees {
		if err := f.round(ctx, round); err != nil {
			return nil, err
		}
	}
	return f.model, nil
}

// Stages implements Preparer.
func (s Boost) Stages(usual prepare.Usual) []table.Stage { return usual.AsTheyAre() }

// boosting is the state of a fit.
type boosting struct {
	Boost
	flock  table.Flock
	table  *binned
	rows   Rows
	model  *TreeModel
	loss   string
	grower *grower
	trees  []*tree   // of the current round
	output []float64 // for each row, a number for each tree of a round
	odds   [blockRows]float32
}

func newBoosting(ctx context.Context, s Boost, flock table.Flock, b *binned, rows Rows) (*boosting, error) {
	f := &boosting{Boost: s, flock: flock, table: b, rows: rows, loss: sumOfLeaves}
	k := 1
	switch classes := len(rows.Classes); {
	case classes == 2:
		f.loss = oddsOfLeaves
	case classes > 2:
		f.loss, k = softOfLeaves, classes
	}
	base, err := f.base(ctx)
	if err != nil {
		return nil, err
	}
	f.model = newTreeModel(b, f.loss, len(rows.Classes), base)
	f.grower = newGrower(flock, b, limits{leaves: s.Leaves, depth: s.Depth, minRows: s.MinRows})
	weights := f.loss != sumOfLeaves || b.weighted
	for range k {
		t := &tree{grad: newGradients(b, 1, weights)}
		t.grad.scale(b.weight, b.weight)
		f.trees = append(f.trees, t)
	}
	f.output = make([]float64, b.rows*k)
	for i := range f.output {
		f.output[i] = base[i%k]
	}
	return f, nil
}

// base is the value that the trees start from: the mean, or logarithms of odds or of probabilities.
func (f *boosting) base(ctx context.Context) ([]float64, error) {
	classes := len(f.rows.Classes)
	d := newGradients(f.table, 1, true)
	d.gBits += gradientBits / 2 // more bits fit, since these numbers are no int32
	d.gBits = min(d.gBits, exactBits-1-d.shift)
	d.scale(f.table.weight*max(f.table.target, 1), f.table.weight)
	vector := make([]float64, 2+classes) // sum of targets, of weights, of weights by class
	for i := range f.table.rows {
		weight := math.RoundToEven(f.rows.weight(i) / d.hUnit)
		vector[0] += math.RoundToEven(f.rows.weight(i) * f.rows.Target[i] / d.gUnit)
		vector[1] += weight
		if classes > 0 {
			vector[2+int(f.rows.Target[i])] += weight
		}
	}
	sum, _, err := f.flock.Sum(ctx, "base", vector)
	if err != nil {
		return nil, fmt.Errorf("learn: summing targets: %w", err)
	}
	if err := table.Counts("base", table.MaxCount, append([]float64{math.Abs(sum[0])}, sum[1:]...)...); err != nil {
		return nil, fmt.Errorf("learn: %w", err)
	}
	if classes == 0 {
		return []float64{sum[0] * d.gUnit / (sum[1] * d.hUnit)}, nil
	}
	counts := sum[2:]
	if err := wantTwo(f.rows.Classes, counts); err != nil {
		return nil, err
	}
	if classes == 2 {
		return []float64{coarseLog(counts[1]) - coarseLog(counts[0])}, nil
	}
	base := make([]float64, classes)
	for c, n := range counts {
		base[c] = coarseLog(max(n, 0.5)) - coarseLog(sum[1])
	}
	return base, nil
}

// coarseLog is a logarithm without its last digits, which differ between processors.
func coarseLog(x float64) float64 { return math.RoundToEven(math.Log(x)*(1<<20)) / (1 << 20) }

// round adds a tree for each output.
func (f *boosting) round(ctx context.Context, round int) error {
	if err := f.setGradients(ctx, round); err != nil {
		return err
	}
	keep := sampled(f.table.keys, f.Rows, treeSeed(f.Seed, round, 0))
	for i, t := range f.trees {
		t.find = newFinder(f.table, t.grad, f.MinRows, f.L2, categoryL2)
		t.draw = treeSeed(f.Seed, round*len(f.trees)+i, 1)
		t.all.columns = f.table.allColumns(t.all.columns[:0])
		if f.Columns > 0 && f.Columns < 1 {
			t.all.columns = sampleColumns(t.all.columns, max(1, int(f.Columns*float64(len(f.table.columns))+0.5)), t.draw, 0)
		}
		f.grower.start(t, keep)
	}
	if err := f.grower.grow(ctx, f.trees); err != nil {
		return err
	}
	for k, t := range f.trees {
		leaf := func(sums []float64) float64 { return float64(f.Rate * t.grad.value(sums[2], sums[1], f.L2)) }
		f.model.add(f.table, t, leaf)
		stride := t.grad.stride()
		if keep != nil {
			for row := range f.table.rows {
				id := int(t.leafOf(f.table, row))
				f.output[row*len(f.trees)+k] += leaf(t.sums[id*stride : (id+1)*stride])
			}
			continue
		}
		for id, n := range t.nodes {
			if n.left != 0 {
				continue
			}
			value := leaf(t.sums[id*stride : (id+1)*stride])
			for _, row := range t.rows[n.from:n.to] {
				f.output[int(row)*len(f.trees)+k] += value
			}
		}
	}
	return nil
}

// setGradients sets the gradients of the loss at the current outputs. A float32 of the exponential is as exact as gradients are.
func (f *boosting) setGradients(ctx context.Context, round int) error {
	y := f.rows.Target
	switch f.loss {
	case sumOfLeaves:
		most := 0.0
		for i, out := range f.output {
			most = max(most, math.Abs(y[i]-out))
		}
		name := fmt.Sprintf("residual%d", round)
		largest, _, err := f.flock.Max(ctx, name, []float64{most})
		if err == nil && largest[0] > maxWeight && f.Rate > 2 { // each tree leaves more than there was
			err = fmt.Errorf("%w: by a rate of %g residuals grow", ErrSettings, f.Rate)
		}
		if err == nil {
			err = table.Counts(name, maxWeight, largest...)
		}
		if err != nil {
			return fmt.Errorf("learn: the largest residual: %w", err)
		}
		d := f.trees[0].grad
		d.scale(largest[0]*f.table.weight, f.table.weight)
		for i, out := range f.output {
			weight := f.rows.weight(i)
			d.set(i, float64(weight*(y[i]-out)), weight)
		}
	case oddsOfLeaves:
		d, odds := f.trees[0].grad, f.odds[:] // against class 1
		for from := 0; from < len(f.output); from += len(odds) {
			odds = odds[:min(len(odds), len(f.output)-from)]
			for i := range odds {
				odds[i] = float32(-f.output[from+i])
			}
			kernel.Exp(odds, odds)
			for i, against := range odds {
				p, row := 1/(1+float64(against)), from+i
				weight := f.rows.weight(row)
				d.set(row, float64(weight*(y[row]-p)), float64(weight*float64(p*(1-p))))
			}
		}
	default:
		k := len(f.trees)
		p := make([]float64, k)
		for i := range f.table.rows {
			copy(p, f.output[i*k:(i+1)*k])
			softmax(p)
			weight := f.rows.weight(i)
			for c, t := range f.trees {
				is := 0.0
				if int(y[i]) == c {
					is = 1
				}
				t.grad.set(i, float64(weight*(is-p[c])), float64(weight*float64(p[c]*(1-p[c]))))
			}
		}
	}
	return nil
}
