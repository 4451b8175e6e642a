package summary

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

const (
	maxNumber = 1e75    // cubes of numbers up to it can be added up
	maxWhole  = 1 << 53 // whole numbers up to it are exact
	rounding  = 1e-12   // error of sums, as a share of the largest number
	maxBins   = 48      // of a histogram, besides one at each end
	parts     = 256     // into which a pass divides the span of a quantile
	rounds    = 3       // of passes after the first
)

// shares are the shares of the quantiles; the tenths divide columns for relations.
var shares = []float64{0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99}

// number has the sums of a column of numbers. Moments are of differences from the mean of the first pass: so large
// numbers that hardly differ lose no digits. Quantiles are found by counts alone, so no value is shown: each pass
// divides the span in which a row is, and the next pass takes the part that has the row.
type number struct {
	rows          float64
	sum           []float64 // of all numbers, and how many are not whole
	ends          []float64 // the largest number, and the least negated
	mean, least   float64
	smooth        float64 // differences below it are rounding
	whole         bool
	moments       []float64 // sums of differences from mean, of their squares and cubes
	spans         []span    // of the rows below and above each quantile
	counts        []float64 // by parts of spans; of several equal spans only the first counts
	edges, binned []float64 // of the histogram
	tenths        []float64 // edges that divide the rows for relations
}

// span is the range, both end keys included, of the row that has a given place from 0 in the order of the numbers.
type span struct {
	row           float64
	from, most    uint64
	below, within float64 // rows
}

func (s span) step() uint64 { return (s.most-s.from)/parts + 1 }

func (n *number) first(x, rows float64) {
	if n.sum[0] += rows * x; x != math.Floor(x) || math.Abs(x) > maxWhole {
		n.sum[1] += rows
	}
	n.ends[0], n.ends[1] = max(n.ends[0], x), max(n.ends[1], -x)
}

// begin takes the sums of the first pass over all members.
func (n *number) begin(rows float64) error {
	most := n.ends[0]
	n.rows, n.mean, n.least = rows, n.sum[0]/rows, -n.ends[1]
	n.whole = n.sum[1] == 0 && most-n.least <= maxWhole
	largest := max(math.Abs(n.least), math.Abs(most))
	if n.smooth = rounding * largest; !(n.least <= most && largest <= maxNumber && n.mean >= n.least-n.smooth && n.mean <= most+n.smooth) {
		return fmt.Errorf("%w: numbers from %g to %g have the mean %g", table.ErrSum, n.least, most, n.mean)
	}
	n.mean = min(max(n.mean, n.least), most)
	for _, share := range shares {
		for _, row := range []float64{math.Floor(share * (rows - 1)), math.Ceil(share * (rows - 1))} {
			n.spans = append(n.spans, span{row, n.key(n.least), n.key(most), 0, rows})
		}
	}
	return nil
}

// key numbers values in their order; whole numbers count from the least.
func (n *number) key(x float64) uint64 {
	b := math.Float64bits(x + 0) // -0 is 0
	switch {
	case n.whole:
		return uint64(x - n.least)
	case b>>63 != 0:
		return ^b
	}
	return b | 1<<63
}

func (n *number) value(key uint64) float64 {
	switch {
	case n.whole:
		return n.least + float64(key)
	case key>>63 != 0:
		return math.Float64frombits(key &^ (1 << 63))
	}
	return math.Float64frombits(^key)
}

func (n *number) again(x, rows float64, round int) {
	key := n.key(x)
	for i := range n.spans {
		if s := &n.spans[i]; key >= s.from && key <= s.most {
			n.counts[i*parts+int((key-s.from)/s.step())] += rows
			break
		}
	}
	switch d := x - n.mean; round {
	case 0:
		n.moments[0], n.moments[1], n.moments[2] = n.moments[0]+rows*d, n.moments[1]+rows*(d*d), n.moments[2]+rows*(d*d*d)
	case rounds - 1:
		n.binned[max(min(binOf(n.edges, x), len(n.binned)), 1)-1] += rows
	}
}

// binOf is how many of the ascending edges are at most x.
func binOf(edges []float64, x float64) int {
	return sort.Search(len(edges), func(i int) bool { return edges[i] > x })
}

// divide narrows the spans by the counts of all members.
func (n *number) divide() error {
	before := slices.Clone(n.spans)
	for i, s := range before {
		below, first := s.below, slices.IndexFunc(before, func(o span) bool { return o.from == s.from })
		for part, rows := range n.counts[first*parts : (first+1)*parts] {
			if from := s.from + uint64(part)*s.step(); s.row >= below && s.row < below+rows {
				n.spans[i] = span{s.row, from, min(from+s.step()-1, s.most), below, rows}
			}
			below += rows
		}
		if below != s.below+s.within {
			return fmt.Errorf("%w: the parts of a column have %g rows, the whole %g", table.ErrSum, below-s.below, s.within)
		}
	}
	return nil
}

// quantile returns the number with the fewest digits within the error.
func (n *number) quantile(share float64) Quantile {
	i := 2 * slices.Index(shares, share)
	low, high, between := 0.0, 0.0, share*(n.rows-1)-n.spans[i].row
	for side, part := range []float64{1 - between, between} {
		low, high = low+part*n.value(n.spans[i+side].from), high+part*n.value(n.spans[i+side].most)
	}
	value := low/2 + high/2
	for digits := range 17 {
		if x, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits+1, 64), 64); err == nil && x >= low && x <= high {
			value = x
			break
		}
	}
	if low <= 0 && high >= 0 {
		value = 0
	}
	return Quantile{share, value, max(value-low, high-value)}
}

// cut computes the edges of bins from the quantiles so far: a histogram has bins of one width, and another bin at
// each end.
func (n *number) cut() {
	before := span{}
	for i := 1; i < 10; i++ {
		s := n.spans[2*slices.Index(shares, float64(i)/10)]
		if n.tenths = append(n.tenths, n.value(s.from)); s.from == before.from && i > 1 { // equal edges come from a number that many rows have
			n.tenths = append(n.tenths, math.Nextafter(n.value(s.most), math.Inf(1)))
		}
		before = s
	}
	slices.Sort(n.tenths)
	n.tenths = slices.Compact(n.tenths)
	most, low, high := n.ends[0], n.quantile(shares[0]).Value, n.quantile(shares[len(shares)-1]).Value
	width, count := (high-low)/maxBins, maxBins
	if low-n.least < width || width == 0 || n.whole && most-n.least < maxBins {
		low = n.least
	}
	if most-high < width || width == 0 || n.whole && most-n.least < maxBins {
		high = most
	}
	if width = (high - low) / maxBins; n.whole { // each bin has the same number of whole numbers
		low, width = math.Floor(low), math.Ceil((high-low+1)/maxBins)
		low, count = low-0.5, int(math.Ceil((high-low+1)/width))
	}
	for i := 0; i <= count; i++ {
		n.edges = append(n.edges, low+float64(i)*width)
	}
	if n.edges = slices.Compact(n.edges); n.least < n.edges[0] {
		n.edges = slices.Insert(n.edges, 0, n.least)
	}
	if most > n.edges[len(n.edges)-1] || len(n.edges) == 1 {
		n.edges = append(n.edges, most)
	}
}

// told makes the summary from the sums of all members.
func (n *number) told(least float64) (*Numbers, error) {
	total, off := 0.0, n.moments[0]/n.rows
	deviation, out := math.Sqrt(max(n.moments[1]/n.rows-off*off, 0)), &Numbers{Mean: n.mean + off, Min: n.least, Max: n.ends[0]}
	if n.rows > 1 && deviation > n.smooth {
		out.Std = deviation * math.Sqrt(n.rows/(n.rows-1))
		cubes := n.moments[2]/n.rows - 3*off*(n.moments[1]/n.rows) + 2*off*off*off
		out.Skew = math.Round(cubes/deviation/deviation/deviation*math.Sqrt(n.rows*(n.rows-1))/max(n.rows-2, 1)/rounding) * rounding
	}
	for i, share := range shares {
		if row := n.spans[2*i].row; row+1 >= least && n.rows-row >= least {
			out.Quantiles = append(out.Quantiles, n.quantile(share))
		}
	}
	for _, rows := range n.binned {
		total += rows
	}
	if x := out.Mean + out.Std + out.Skew; total != n.rows || x-x != 0 {
		return nil, fmt.Errorf("%w: a histogram has %g rows, the column %g, with the mean %g", table.ErrSum, total, n.rows, out.Mean)
	}
	out.Histogram = histogram(n.edges, n.binned, least)
	return out, nil
}
