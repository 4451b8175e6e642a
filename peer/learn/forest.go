package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Tree fits one decision tree, whose splits reduce the Gini impurity of classes or the variance of a number. It is
// fitted like Boost, and takes the same columns.
type Tree struct {
	Depth   int // at most; 0: 10
	Leaves  int // at most; those that gain most are kept; 0: no bound
	MinRows int // of a leaf; 0: 20
}

// Fit grows the tree.
func (s Tree) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	s.Depth, s.MinRows = cmp.Or(s.Depth, 10), cmp.Or(s.MinRows, 20)
	if s.Depth < 0 || s.Leaves < 0 || s.MinRows < 0 {
		return nil, fmt.Errorf("learn: a tree by %+v: a setting is below 0", s)
	}
	return fitTrees(ctx, flock, rows, s, Forest{Trees: 1, Depth: s.Depth, MinRows: s.MinRows, Rows: 1, Columns: 1}, s.Leaves)
}

// Stages implements Preparer.
func (s Tree) Stages(usual prepare.Usual) []table.Stage { return usual.AsTheyAre() }

// Forest fits many trees and predicts their mean. Each tree is fitted on a part of the rows, and each of its nodes is
// split by a part of the columns. It is fitted like Boost, several trees at a time.
type Forest struct {
	Trees   int     // 0: 100
	Depth   int     // of a tree, at most; 0: 14
	MinRows int     // of a leaf; 0: 1, as scikit-learn's: the mean of many trees cancels the chance errors of each
	Rows    float64 // part of the rows that each tree is fitted on; 0: 0.632, the share of distinct rows in a bootstrap
	Columns float64 // part of the columns that each node may be split by; 0: the square root of their number
	Seed    uint64  // of what is sampled
}

// forestAtOnce is how many trees of a forest grow at a time: their histograms share sums.
const forestAtOnce = 8

// Fit grows the trees.
func (s Forest) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	s.Trees, s.Depth, s.MinRows = cmp.Or(s.Trees, 100), cmp.Or(s.Depth, 14), cmp.Or(s.MinRows, 1)
	s.Rows = cmp.Or(s.Rows, 0.632)
	if s.Trees < 0 || s.Depth < 0 || s.MinRows < 0 || !isShare(s.Rows) || !isShare(s.Columns) {
		return nil, fmt.Errorf("learn: a forest by %+v: a setting is out of range", s)
	}
	return fitTrees(ctx, flock, rows, s, s, 0)
}

// Stages implements Preparer.
func (s Forest) Stages(usual prepare.Usual) []table.Stage { return usual.AsTheyAre() }

// fitTrees fits trees independently of each other.
func fitTrees(ctx context.Context, flock table.Flock, rows Rows, settings any, s Forest, leaves int) (Model, error) {
	b, err := binRows(ctx, flock, rows, settings)
	if err != nil {
		return nil, err
	}
	f := &boosting{flock: flock, table: b, rows: rows}
	base, err := f.base(ctx)
	if err != nil {
		return nil, err
	}
	grad, err := f.means(ctx, base)
	if err != nil {
		return nil, err
	}
	classes := len(rows.Classes)
	m := newTreeModel(b, meanOfLeaves, classes, make([]float64, grad.outputs))
	l := limits{leaves: leaves, depth: s.Depth, minRows: s.MinRows}
	if n := len(b.columns); s.Columns == 0 {
		l.columns = int(math.Sqrt(float64(n)))
	} else if s.Columns < 1 {
		l.columns = max(1, int(s.Columns*float64(n)+0.5))
	}
	g := newGrower(flock, b, l)
	var trees []*tree
	for range min(forestAtOnce, s.Trees) {
		trees = append(trees, &tree{grad: grad, all: layout{columns: b.allColumns(nil)}, find: newFinder(b, grad, l.minRows, 0, 0)})
	}
	for from := 0; from < s.Trees; from += forestAtOnce {
		trees = trees[:min(forestAtOnce, s.Trees-from)]
		for i, t := range trees {
			t.draw = treeSeed(s.Seed, from+i, 1)
			g.start(t, sampled(b.keys, s.Rows, treeSeed(s.Seed, from+i, 0)))
		}
		if err := g.grow(ctx, trees); err != nil {
			return nil, err
		}
		for _, t := range trees {
			m.add(b, t, func(sums []float64) float64 { return m.meanLeaf(grad, sums, base) })
		}
	}
	return m, nil
}

// means returns gradients that make a leaf's value the mean of its rows. The target is the gradient; with more than
// two classes each class has a sum of its own.
func (f *boosting) means(ctx context.Context, base []float64) (*gradients, error) {
	b, y := f.table, f.rows.Target
	switch classes := len(f.rows.Classes); {
	case classes == 0:
		f.loss = sumOfLeaves
		f.trees = []*tree{{grad: newGradients(b, 1, b.weighted)}}
		for range b.rows {
			f.output = append(f.output, base[0])
		}
		return f.trees[0].grad, f.setGradients(ctx, 0)
	case classes == 2:
		d := newGradients(b, 1, b.weighted)
		if !b.weighted { // counts
			d.gBits, d.signed = 0, false
		}
		d.scale(b.weight, b.weight)
		for i := range b.rows {
			weight := f.rows.weight(i)
			d.set(i, float64(weight*y[i]), weight)
		}
		return d, nil
	case classes > maxClasses:
		return nil, fmt.Errorf("learn: a tree or forest for %d classes; want at most %d, or boosting", classes, maxClasses)
	default:
		d := newGradients(b, classes, b.weighted)
		d.scale(1, b.weight)
		d.class = make([]uint8, b.rows)
		for i := range b.rows {
			d.class[i] = uint8(y[i])
			d.set(i, 0, f.rows.weight(i))
		}
		return d, nil
	}
}

// maxClasses bounds the classes of Tree and Forest, whose histograms have a sum for each.
const maxClasses = 256

// shareDigits is the precision of probabilities in a leaf of a tree or forest: rounded numbers halve the size of the
// file.
const shareDigits = 1e6

// meanLeaf is the value of a leaf: a mean, the probability of class 1 of two, or an index into shares.
func (m *TreeModel) meanLeaf(d *gradients, sums, base []float64) float64 {
	if m.classes == 0 {
		return base[0] + d.value(sums[2], sums[1], 0)
	}
	if d.class == nil {
		p := min(max(d.value(sums[2], sums[1], 0), 0), 1)
		if sums[1] == 0 { // no row was drawn for the tree
			p = sigmoid(base[0])
		}
		return math.RoundToEven(p*shareDigits) / shareDigits
	}
	at := len(m.shares)
	for c, weight := range sums[2:] {
		share := weight / sums[1]
		if sums[1] == 0 {
			share = math.Exp(base[c])
		}
		m.shares = append(m.shares, math.RoundToEven(share*shareDigits)/shareDigits)
	}
	return float64(at)
}
