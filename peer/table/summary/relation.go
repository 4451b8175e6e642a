package summary

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// maxCells bounds the cells of a column and the target; the least frequent values of a category share cells.
const maxCells = 1 << 16

// crossed counts rows by bins of a column (the last is for missing values) and classes of the target.
type crossed struct {
	tenths []float64
	places map[string]int
	bins   int
	cells  []float64
}

func cross(d *describing, c *column) *crossed {
	x := &crossed{places: map[string]int{}, bins: 2}
	if c.number != nil {
		x.tenths = c.number.tenths
	} else {
		kept, _ := told(c.category.cells, int64(c.rows), max(maxCells/len(d.classes)-x.bins, 0), d.least)
		for i, cell := range kept {
			x.places[cell.Value] = i
		}
	}
	x.bins += len(x.tenths) + len(x.places)
	x.cells = d.counted(x.bins * len(d.classes))
	return x
}

// binsOf returns the bin of each row.
func (x *crossed) binsOf(c *table.Column) []int {
	bins, of := make([]int, len(c.Numbers)+len(c.Codes)), make([]int, len(c.Values))
	for i, value := range c.Values {
		of[i] = len(x.places)
		if at, known := x.places[value]; known {
			of[i] = at
		}
	}
	for row := range bins {
		switch bins[row] = x.bins - 1; {
		case c.Kind == table.Category && c.Codes[row] >= 0:
			bins[row] = of[c.Codes[row]]
		case c.Kind == table.Number && c.Numbers[row] == c.Numbers[row]:
			bins[row] = binOf(x.tenths, c.Numbers[row])
		}
	}
	return bins
}

// relate counts the rows of a batch by their target, a class or a number.
func (d *describing) relate(b *table.Batch) error {
	features, target, err := d.labels.Of(b)
	if err != nil {
		return err
	}
	weights := d.weights(features)
	for row, y := range target {
		if d.labels.Classes == nil {
			target[row] = float64(binOf(d.tenths, y))
		}
		d.classes[int(target[row])] += weights[row]
	}
	for i, c := range d.columns {
		if of := features.FindNear(c.Name, i); of != nil && c.crossed != nil {
			for row, bin := range c.crossed.binsOf(of) {
				c.crossed.cells[bin*len(d.classes)+int(target[row])] += weights[row]
			}
		}
	}
	return nil
}

// relation computes the relation from the cells.
func (x *crossed) relation(classes int) *Relation {
	sums, total := [2][]float64{make([]float64, x.bins), make([]float64, classes)}, 0.0
	for i, n := range x.cells {
		sums[0][i/classes], sums[1][i%classes], total = sums[0][i/classes]+n, sums[1][i%classes]+n, total+n
	}
	used, entropy := [2]int{}, 0.0
	for axis := range sums {
		entropy = 0 // the last one is the target's entropy
		for _, n := range sums[axis] {
			if n > 0 {
				used[axis], entropy = used[axis]+1, entropy-n/total*math.Log2(n/total)
			}
		}
	}
	r := &Relation{Freedom: max(used[0]-1, 0) * max(used[1]-1, 0)}
	for i, n := range x.cells {
		if expected := sums[0][i/classes] * (sums[1][i%classes] / max(total, 1)); expected > 0 {
			r.ChiSquared += (n - expected) * ((n - expected) / expected)
			r.Information += n / total * math.Log2(max(n, 1)/expected)
		}
	}
	if r.Information = max(r.Information, 0); r.Freedom > 0 {
		r.Share = min(max(r.Information-float64(r.Freedom)/(2*math.Ln2*total), 0)/entropy, 1)
	}
	return r
}

// pair has sums over the rows in which two columns of numbers both have values: the count, and the sums of
// differences from both means, of their squares and of their product.
type pair struct {
	a, b *column
	sums []float64
}

// pairUp pairs the first columns of numbers that are not constant.
func pairUp(d *describing) {
	var all []*column
	for _, c := range d.columns {
		if c.number != nil && c.rows >= d.least && c.number.ends[0] > c.number.least {
			all = append(all, c)
		}
	}
	d.out.Uncorrelated = max(len(all)-MaxPaired, 0)
	for i, b := range all[:min(len(all), MaxPaired)] {
		for _, a := range all[:i] {
			d.pairs = append(d.pairs, &pair{a, b, d.summed(6)})
		}
	}
}

func (p *pair) add(b *table.Batch, weights []float64) {
	second := b.Find(p.b.Name).Numbers
	for row, x := range b.Find(p.a.Name).Numbers {
		if x, y, w := x-p.a.number.mean, second[row]-p.b.number.mean, weights[row]; x == x && y == y {
			for i, v := range [...]float64{1, x, y, x * x, y * y, x * y} {
				p.sums[i] += w * v
			}
		}
	}
}

// correlations leaves out pairs in which a column is constant where both have values.
func correlations(pairs []*pair, least float64) (all []Correlation) {
	for _, p := range pairs {
		n, x, y := p.sums[0], p.sums[1]/p.sums[0], p.sums[2]/p.sums[0]
		sx, sy := math.Sqrt(max(p.sums[3]/n-x*x, 0)), math.Sqrt(max(p.sums[4]/n-y*y, 0))
		if n >= max(least, 2) && sx > p.a.number.smooth && sy > p.b.number.smooth {
			all = append(all, Correlation{[2]string{p.a.Name, p.b.Name}, min(max((p.sums[5]/n-x*y)/sx/sy, -1), 1), int64(n)})
		}
	}
	slices.SortStableFunc(all, func(a, b Correlation) int { return cmp.Compare(math.Abs(b.R), math.Abs(a.R)) })
	return all
}
