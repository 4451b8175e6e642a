package learn

import (
	"cmp"
	"slices"
)

// Categories are split as LightGBM does: in the order of their mean gradient, where categories with few rows stay
// with the rest.
const (
	smoothRows    = 10 // rows with a gradient of 0 that are added to each category when it is ordered
	maxCategories = 32 // on the side of a split that has fewer
	// groupRows is how many rows of categories move to the left together, and stay right, at least (LightGBM's
	// min_data_per_group), but at most a hundredth of all rows. On the flights data it improves AUC by 0.0005.
	groupRows = 100
)

// binSet is a set of bins.
type binSet [4]uint64

func (s *binSet) add(bin int)        { s[bin>>6] |= 1 << (bin & 63) }
func (s *binSet) has(bin uint8) bool { return s[bin>>6]>>(bin&63)&1 != 0 }

// split divides the rows of a node: those in the bins of left go to the left.
type split struct {
	gain   float64 // 0: there is none
	column int32
	bin    uint8 // for numbers: the last bin of values on the left
	left   binSet
}

// finder looks for the best split of a node. Gains are in units of gUnit²/hUnit.
type finder struct {
	table   *binned
	grad    *gradients
	minRows float64
	l2      float64 // in units of hUnit
	group   float64 // least rows that one scan moves at a time
	smooth  float64 // added to l2 for categories
	order   []uint8 // bins in the order in which they move to the left
	places  [256]uint8
	mean    [256]float64
	floor   float64   // least gain of a split
	centred []float64 // a column's histogram, less the node's mean
	none    []float64 // the sums over the node, less the node's mean
	sum     []float64 // sums of the bins on the left; rest has the others
	rest    []float64
}

func newFinder(b *binned, d *gradients, minRows int, l2, categoryL2 float64) *finder {
	f := &finder{table: b, grad: d, minRows: float64(max(minRows, 1)), l2: l2 / d.hUnit, smooth: categoryL2 / d.hUnit}
	for i := range f.places {
		f.places[i] = uint8(i)
	}
	f.order = make([]uint8, 0, 256)
	f.sum, f.rest, f.none = make([]float64, d.stride()), make([]float64, d.stride()), make([]float64, d.stride())
	return f
}

// score is the gain of a leaf with these sums.
func score(sum []float64, l2 float64) float64 {
	total := 0.0
	for _, g := range sum[2:] {
		total += float64(g * g)
	}
	return total / (sum[1] + l2)
}

// find stores the best split of a node in best, and the sums of its left side in left. levels are the columns at the
// level of the layout; all has the sums over the node.
func (f *finder) find(l *layout, levels []*coarseColumn, hist, all []float64, best *split, left []float64) {
	*best = split{}
	stride := f.grad.stride()
	if all[0] < 2*f.minRows || all[1] <= 0 {
		return
	}
	f.floor = leastGain * score(all, f.l2)
	for i, c := range l.columns {
		h := hist[int(l.offset[i])*stride : int(l.offset[i+1])*stride]
		if f.table.columns[c].category {
			f.category(c, levels[c], h, all, best, left)
		} else {
			f.number(c, levels[c], h, all, best, left)
		}
	}
	if best.gain <= 0 {
		return
	}
	// Bins without rows of the node go where most of its rows go.
	c := best.column
	at := slices.Index(l.columns, c)
	h := hist[int(l.offset[at])*stride : int(l.offset[at+1])*stride]
	most := 2*left[0] >= all[0]
	fine, values := best.left, f.table.columns[c].bins-1
	best.left = binSet{}
	for bin := range values + 1 {
		to := levels[c].to[bin]
		on := fine.has(to)
		if h[int(to)*stride] == 0 && (f.table.columns[c].category || bin == values) {
			on = most
		}
		if on {
			best.left.add(bin)
		}
	}
}

// number tries the thresholds of a column, first with missing values on the right, then on the left.
func (f *finder) number(c int32, to *coarseColumn, h, all []float64, best *split, left []float64) {
	values := to.bins - 1
	stride := f.grad.stride()
	absent := h[values*stride:]
	for _, missingLeft := range []bool{false, true} {
		clear(f.sum)
		if missingLeft {
			if absent[0] == 0 {
				return
			}
			copy(f.sum, absent)
		}
		at, gain := f.scan(f.places[:values], h, all, f.l2, best.gain, values, left)
		if at < 0 {
			continue
		}
		*best = split{gain: gain, column: c, bin: uint8(min((at+1)<<to.shift, f.table.columns[c].bins-1) - 1)}
		for bin := range at + 1 {
			best.left.add(bin)
		}
		if missingLeft {
			best.left.add(values)
		}
	}
}

// category orders the bins of a column and tries to cut the order in two. It compares gradients less the node's mean:
// so the higher l2 of categories draws values to that mean, and not to 0.
func (f *finder) category(c int32, to *coarseColumn, h, all []float64, best *split, left []float64) {
	stride := f.grad.stride()
	most := 2 // the output with the largest sum orders the categories
	for o := 3; o < stride; o++ {
		if all[o] > all[most] {
			most = o
		}
	}
	smooth := float64(smoothRows*all[1]) / all[0]
	f.order = f.order[:0]
	f.centred = append(f.centred[:0], h...)
	for bin := range to.bins {
		sums := f.centred[bin*stride : (bin+1)*stride]
		if sums[0] < min(smoothRows, f.minRows) || sums[0] == 0 {
			continue
		}
		for o := 2; o < stride; o++ {
			sums[o] -= float64(sums[1]*all[o]) / all[1]
		}
		f.mean[bin] = sums[most] / (sums[1] + smooth)
		f.order = append(f.order, uint8(bin))
	}
	slices.SortFunc(f.order, func(a, b uint8) int {
		return cmp.Or(cmp.Compare(f.mean[a], f.mean[b]), cmp.Compare(a, b))
	})
	clear(f.sum)
	clear(f.none)
	f.none[0], f.none[1] = all[0], all[1]
	f.group = min(groupRows, float64(f.table.all)/100)
	at, gain := f.scan(f.order, f.centred, f.none, f.l2+f.smooth, best.gain, maxCategories, left)
	f.group = 0
	if at < 0 {
		return
	}
	*best = split{gain: gain, column: c}
	clear(left[:stride])
	for _, bin := range f.order[:at+1] {
		best.left.add(int(bin))
		for o, x := range h[int(bin)*stride : (int(bin)+1)*stride] {
			left[o] += x
		}
	}
}

// scan moves bins in their order to the left side, f.sum. It returns the index of the last bin that should move and
// the split's gain, or -1 if no gain is above best, and stores the sums of the left side in left. One side has at
// most most bins.
func (f *finder) scan(order []uint8, h, all []float64, l2, best float64, most int, left []float64) (int, float64) {
	if len(f.sum) == 3 {
		return f.scanOne(order, h, all, l2, best, most, left)
	}
	stride, at := len(f.sum), -1
	base := score(all, f.l2)
	for i, bin := range order {
		for o, x := range h[int(bin)*stride : (int(bin)+1)*stride] {
			f.sum[o] += x
			f.rest[o] = all[o] - f.sum[o]
		}
		if f.rest[0] < f.minRows {
			break
		}
		if f.sum[0] < f.minRows || f.sum[1] <= 0 || f.rest[1] <= 0 || min(i+1, len(order)-i-1) > most {
			continue
		}
		if gain := score(f.sum, l2) + score(f.rest, l2) - base; gain > max(best, f.floor) {
			best, at = gain, i
			copy(left, f.sum)
		}
	}
	return at, best
}

// leastGain is the least gain of a split, as a part of the node's score: smaller gains are rounding.
const leastGain = 1e-10

// scanOne is scan for one output, the case that takes most of the time.
func (f *finder) scanOne(order []uint8, h, all []float64, l2, best float64, most int, left []float64) (int, float64) {
	n, w, g, at, last := f.sum[0], f.sum[1], f.sum[2], -1, 0.0
	allN, allW, allG := all[0], all[1], all[2]
	base := score(all, f.l2)
	least := max(best, f.floor) + base
	for i, bin := range order {
		sums := h[int(bin)*3 : int(bin)*3+3]
		n, w, g = n+sums[0], w+sums[1], g+sums[2]
		if allN-n < max(f.minRows, f.group) {
			break
		}
		if n-last < f.group {
			continue
		}
		last = n
		restW, restG := allW-w, allG-g
		if sums[0] == 0 || n < f.minRows || w <= 0 || restW <= 0 || min(i+1, len(order)-i-1) > most {
			continue
		}
		if gain := float64(g*g)/(w+l2) + float64(restG*restG)/(restW+l2); gain > least {
			least, at = gain, i
			left[0], left[1], left[2] = n, w, g
		}
	}
	if at < 0 {
		return at, best
	}
	return at, least - base
}
