package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Bounds of the memory and the sums of growing trees.
const (
	maxSum  = 1 << 19  // numbers in one sum: 4 MB
	maxHeld = 64 << 20 // bytes of histograms that are held for subtracting a child's from its parent's
	// thresholds is how many thresholds are tried for each leaf that a node has rows for, if each node draws its
	// columns: bins are joined until they are that few. With 8, forests score 0.001 higher on the flights data, and
	// sums are half as large again.
	thresholds = 4
	// smallLeaf is the least number of rows in a leaf when thresholds are counted: with leaves of one row forests
	// score as high, and sums are two thirds as large.
	smallLeaf = 5
)

// limits bound a tree.
type limits struct {
	leaves  int // 0: no bound
	depth   int // 0: no bound
	minRows int // of a leaf
	columns int // that a node may be split by, drawn anew for each; 0: all
}

// node is a node of a growing tree.
type node struct {
	from, to    int32 // its rows in tree.rows
	left, right int32 // 0: it is a leaf
	depth       int32
	split       split
	hist        []float64 // nil if it is not held
}

// tree is a growing tree.
type tree struct {
	grad  *gradients
	rows  []int32 // of this member; those of a node stand together
	spare []int32
	draw  uint64 // seed for drawing the tree's columns
	nodes []node
	sums  []float64 // of each node over all members, gradients.stride numbers
	lefts []float64 // of the left side of each node's split
	open  []int32   // leaves that have a split
	all   layout    // columns of all nodes, unless each node draws its own
	find  *finder
}

// request asks for the sum of a node's histogram. Subtracting it from the parent's gives the sibling's.
type request struct {
	tree          *tree
	node, sibling int32 // sibling 0: none
	parent        int32
	layout        layout
	pack          packing
	rows          float64 // of the node, over all members
}

// grower grows trees on the rows of all members, several at once.
type grower struct {
	flock table.Flock
	table *binned
	limits
	hists  *histograms
	sums   int // how many sums were made, for their names
	want   []request
	vector []float64
	free   [][]float64 // histograms
	held   int         // numbers in all histograms that are in use
}

func newGrower(flock table.Flock, b *binned, l limits) *grower {
	l.minRows = max(l.minRows, 1)
	return &grower{flock: flock, table: b, limits: l, hists: newHistograms(b)}
}

// start makes t a single node with the rows for which keep returns true, or all rows if keep is nil.
func (g *grower) start(t *tree, keep func(row int) bool) {
	t.rows = t.rows[:0]
	for row := range g.table.rows {
		if keep == nil || keep(row) {
			t.rows = append(t.rows, int32(row))
		}
	}
	if len(t.spare) < g.table.rows {
		t.spare = make([]int32, g.table.rows)
	}
	stride := t.grad.stride()
	t.nodes = append(t.nodes[:0], node{to: int32(len(t.rows))})
	t.sums, t.lefts = append(t.sums[:0], make([]float64, stride)...), append(t.lefts[:0], make([]float64, stride)...)
	t.open = t.open[:0]
	g.hists.arrange(&t.all)
}

// grow grows all trees up to the limits.
func (g *grower) grow(ctx context.Context, trees []*tree) error {
	g.want = g.want[:0]
	for _, t := range trees {
		g.ask(t, 0, 0, 0, float64(g.table.all))
	}
	for len(g.want) > 0 {
		if err := g.evaluate(ctx); err != nil {
			return err
		}
		g.want = g.want[:0]
		for _, t := range trees {
			g.splitBest(t)
		}
	}
	return nil
}

// ask requests the histogram of a node with that many rows over all members.
func (g *grower) ask(t *tree, id, sibling, parent int32, rows float64) {
	n := len(g.want)
	if n < cap(g.want) {
		g.want = g.want[:n+1] // its layout is used again
	} else {
		g.want = append(g.want, request{})
	}
	w := &g.want[n]
	w.tree, w.node, w.sibling, w.parent, w.pack, w.rows = t, id, sibling, parent, packingFor(t.grad, rows), rows
	w.layout.columns, w.layout.level = w.layout.columns[:0], 0
	if g.columns == 0 {
		w.layout.columns = append(w.layout.columns, t.all.columns...)
	} else {
		w.layout.columns = sampleColumns(g.table.allColumns(w.layout.columns), g.columns, t.draw, int(id))
		enough := max(maxBins>>maxLevel, thresholds*int(rows)/max(g.minRows, smallLeaf))
		for w.layout.level < maxLevel && maxBins>>(w.layout.level+1) >= enough {
			w.layout.level++
		}
	}
	g.hists.arrange(&w.layout)
}

// evaluate sums the requested histograms, as many in one sum as fit, and finds the split of each node.
func (g *grower) evaluate(ctx context.Context) error {
	for from := 0; from < len(g.want); {
		to := from
		g.vector = g.vector[:0]
		for ; to < len(g.want) && len(g.vector) < maxSum; to++ {
			w := &g.want[to]
			n := &w.tree.nodes[w.node]
			cells := g.hists.build(w.tree.grad, &w.layout, w.tree.rows[n.from:n.to])
			g.vector = g.hists.pack(g.vector, w.tree.grad, w.pack, cells)
		}
		g.sums++
		name := fmt.Sprint("trees/", g.sums)
		sum, _, err := g.flock.Sum(ctx, name, g.vector)
		if err = cmp.Or(err, table.Counts(name, table.MaxCount, sum...)); err != nil {
			return fmt.Errorf("learn: summing histograms of trees: %w", err)
		}
		for ; from < to; from++ {
			if sum, err = g.read(&g.want[from], sum); err != nil {
				return fmt.Errorf("learn: histograms of trees, %s: %w", name, err)
			}
		}
	}
	return nil
}

// read takes the histogram of a node from a sum, finds the splits of the node and its sibling, and returns the rest
// of the sum.
func (g *grower) read(w *request, sum []float64) ([]float64, error) {
	t, size := w.tree, w.layout.bins()*w.tree.grad.stride()
	hist := g.take(size)
	sum = g.hists.unpack(hist, sum, t.grad, w.pack)
	stride := t.grad.stride()
	sums := make([]float64, stride)
	for i, x := range hist[:int(w.layout.offset[1])*stride] { // each row is in one bin of the first column
		sums[i%stride] += x
	}
	if sums[0] > w.rows {
		return nil, fmt.Errorf("%w: %g rows, where a node has %g", table.ErrSum, sums[0], w.rows)
	}
	if w.node == 0 {
		copy(t.sums, sums)
	}
	if w.sibling != 0 {
		rest := t.nodes[w.parent].hist
		t.nodes[w.parent].hist = nil
		for i, x := range hist {
			rest[i] -= x
		}
		g.findSplit(w, w.sibling, rest)
	}
	g.findSplit(w, w.node, hist)
	return sum, nil
}

// findSplit finds the split of a node by its histogram, and keeps the histogram for the node's children.
func (g *grower) findSplit(w *request, id int32, hist []float64) {
	t := w.tree
	n, stride := &t.nodes[id], t.grad.stride()
	if g.deeper(t, id) {
		all := t.sums[int(id)*stride : (int(id)+1)*stride]
		t.find.find(&w.layout, g.hists.levels[w.layout.level], hist, all, &n.split, t.lefts[int(id)*stride:])
	}
	if n.split.gain > 0 {
		t.open = append(t.open, id)
		if g.columns == 0 && g.held*8 <= maxHeld {
			n.hist = hist
			return
		}
	}
	g.release(hist)
}

// deeper tells whether a node may be split.
func (g *grower) deeper(t *tree, id int32) bool {
	return (g.depth == 0 || int(t.nodes[id].depth) < g.depth) && t.sums[int(id)*t.grad.stride()] >= float64(2*g.minRows)
}

// splitBest splits leaves and requests the histograms of their children: all leaves that can be split, or, with a
// bound on the leaves, those that bestFirst returns. One sum for each leaf would be slow, so it splits some leaves
// early, and undoes these splits if others gain more.
func (g *grower) splitBest(t *tree) {
	if g.leaves == 0 {
		for _, id := range t.open {
			g.split(t, id, false)
		}
		t.open = t.open[:0]
		return
	}
	chosen, unknown := t.bestFirst(g.leaves - 1)
	few := max(g.leaves/firstLevels, 1)
	last := len(unknown) == 0 || len(chosen) == g.leaves-1 && len(unknown) <= max(g.leaves/lastLevels, 1) || len(t.nodes) > maxAhead*g.leaves
	if !last {
		unknown = unknown[:max(min(few, len(unknown)), int(math.Ceil(float64(len(unknown))*bestPart)))]
	}
	for _, id := range unknown {
		g.split(t, id, last)
	}
	if last {
		for _, id := range t.open {
			g.releaseHistogram(&t.nodes[id])
		}
		t.keep(chosen)
	}
}

// bestFirst returns the nodes that are split, at most splits of them, if the leaf with the largest gain is always
// split next. unknown are those of them that have not been split yet: their children may gain more than later nodes.
func (t *tree) bestFirst(splits int) (chosen, unknown []int32) {
	for leaves := []int32{0}; len(chosen) < splits && len(leaves) > 0; {
		at := 0
		for i, id := range leaves {
			if t.nodes[id].split.gain > t.nodes[leaves[at]].split.gain {
				at = i
			}
		}
		id := leaves[at]
		if t.nodes[id].split.gain <= 0 {
			break
		}
		leaves, chosen = slices.Delete(leaves, at, at+1), append(chosen, id)
		if left := t.nodes[id].left; left != 0 {
			leaves = append(leaves, left, left+1)
		} else {
			unknown = append(unknown, id)
		}
	}
	return chosen, unknown
}

// keep removes all splits but those of the chosen nodes, whose parents come before their children.
func (t *tree) keep(chosen []int32) {
	stride := t.grad.stride()
	order, place := []int32{0}, map[int32]int32{}
	for _, id := range chosen {
		left := t.nodes[id].left
		place[id] = int32(len(order))
		order = append(order, left, left+1)
	}
	nodes, sums := make([]node, 0, len(order)), make([]float64, 0, len(order)*stride)
	for _, id := range order {
		n := t.nodes[id]
		n.left, n.right = 0, 0
		if left, is := place[id]; is {
			n.left, n.right = left, left+1
		}
		nodes, sums = append(nodes, n), append(sums, t.sums[int(id)*stride:(int(id)+1)*stride]...)
	}
	t.nodes, t.sums, t.open = nodes, sums, t.open[:0]
}

// How many leaves of a tree are split at a time: bestPart of those that should be, but at least one in firstLevels of
// the tree's leaves. When at most one in lastLevels is left, their children are not examined. A tree has at most
// maxAhead nodes for each leaf while it grows. 31 leaves take 7 to 9 sums, with the same scores as splitting only the
// best leaf each time, which takes 30.
const (
	bestPart    = 0.7
	firstLevels = 4
	lastLevels  = 7
	maxAhead    = 4
)

// split makes two children of a node, and requests their histograms unless they are the last.
func (g *grower) split(t *tree, id int32, last bool) {
	stride := t.grad.stride()
	left := int32(len(t.nodes))
	n := &t.nodes[id]
	n.left, n.right = left, left+1
	middle := n.from + t.part(g.table.bins[n.split.column], n)
	t.nodes = append(t.nodes, node{from: n.from, to: middle, depth: n.depth + 1}, node{from: middle, to: n.to, depth: n.depth + 1})
	n = &t.nodes[id]
	t.sums = append(t.sums, t.lefts[int(id)*stride:int(id+1)*stride]...)
	for i := range stride {
		t.sums = append(t.sums, t.sums[int(id)*stride+i]-t.lefts[int(id)*stride+i])
	}
	t.lefts = append(t.lefts, t.sums[int(left)*stride:]...)
	wantLeft, wantRight := !last && g.deeper(t, left), !last && g.deeper(t, left+1)
	leftRows, rightRows := t.sums[int(left)*stride], t.sums[int(left+1)*stride]
	if n.hist != nil && (wantLeft || wantRight) {
		if leftRows <= rightRows {
			g.ask(t, left, left+1, id, leftRows)
		} else {
			g.ask(t, left+1, left, id, rightRows)
		}
		return
	}
	if wantLeft {
		g.ask(t, left, 0, id, leftRows)
	}
	if wantRight {
		g.ask(t, left+1, 0, id, rightRows)
	}
	g.releaseHistogram(n)
}

// part sorts the rows that go to the left before those that go to the right, in their order, and returns how many go
// to the left.
func (t *tree) part(bins []uint8, n *node) int32 {
	var goes [256]uint8
	for bin := range goes {
		if n.split.left.has(uint8(bin)) {
			goes[bin] = 1
		}
	}
	rows, spare := t.rows[n.from:n.to], t.spare[:n.to-n.from]
	left, right := 0, 0
	for _, row := range rows {
		goesLeft := int(goes[bins[row]]) // no branch, which the processor would often predict wrong
		rows[left], spare[right] = row, row
		left += goesLeft
		right += 1 - goesLeft
	}
	copy(rows[left:], spare[:right])
	return int32(left)
}

// leafOf finds the leaf of a row that the tree may not have been fitted on.
func (t *tree) leafOf(b *binned, row int) int32 {
	id := int32(0)
	for t.nodes[id].left != 0 {
		n := &t.nodes[id]
		if n.split.left.has(b.bins[n.split.column][row]) {
			id = n.left
		} else {
			id = n.right
		}
	}
	return id
}

// take returns memory for a histogram of that many numbers; its content is arbitrary.
func (g *grower) take(size int) []float64 {
	g.held += size
	for i := len(g.free) - 1; i >= 0; i-- {
		if hist := g.free[i]; cap(hist) >= size {
			g.free = slices.Delete(g.free, i, i+1)
			return hist[:size]
		}
	}
	return make([]float64, size)
}

func (g *grower) release(hist []float64) {
	g.held -= len(hist)
	g.free = append(g.free, hist)
}

// releaseHistogram releases the histogram of a node.
func (g *grower) releaseHistogram(n *node) {
	if n.hist != nil {
		g.release(n.hist)
		n.hist = nil
	}
}
