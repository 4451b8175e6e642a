package learn

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/seed-97356399/murmuration/peer/table"
)

// The edges of bins are quantiles of all members' values, found by sums of counts alone: nobody sees a value, and the
// counts do not depend on how the rows are divided. The range of a column is divided into spans. Spans with many rows
// are divided again, until each span has either one value or too few rows to matter.
const (
	maxBins       = 255     // of a column's values; one more bin is for missing values
	spansAtLeast  = 2 * 255 // with fewer spans all are divided, so that a few distinct values get a bin each
	partsARound   = 1 << 12 // parts in which one sum divides the spans of a column, at most
	partsARow     = 8       // parts for each row of a small column: more rounds, but far fewer counts
	columnsAtOnce = 32      // columns whose values are sorted in memory at a time; more where columns are small
)

// keyOf numbers the finite floats in their order; both zeros have one key.
func keyOf(x float64) uint64 {
	if x == 0 {
		return 1 << 63
	}
	b := math.Float64bits(x)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// missing tells whether a value has no place among thresholds: NaN and both infinities.
func missing(x float64) bool { return x-x != 0 }

// span is a part of a column's range, including both ends, and its number of rows.
type span struct {
	least, most uint64
	rows        float64
}

// spread has the distribution of one column's values. Its keys leave out the low bits that are 0 in all values: so
// whole numbers need few rounds.
type spread struct {
	keys  []uint64 // of this member's values, sorted
	zeros uint     // bits left out
	spans []span
	rows  float64
}

func newSpread(column *table.Column, s columnSummary) *spread {
	p := &spread{zeros: s.Zeros, rows: float64(s.Rows)}
	for _, x := range column.Numbers {
		if !missing(x) {
			p.keys = append(p.keys, keyOf(x)>>p.zeros)
		}
	}
	slices.Sort(p.keys)
	if s.Rows > 0 {
		p.spans = []span{{s.Least >> p.zeros, s.Most >> p.zeros, p.rows}}
	}
	return p
}

// wide tells whether a span is to be divided further.
func (p *spread) wide(s span) bool {
	return s.least < s.most && (len(p.spans) < spansAtLeast || s.rows > p.rows/spansAtLeast)
}

// partsOf is how many parts one round makes of a column with that many rows.
func partsOf(rows float64) int { return int(min(max(partsARow*rows, partsARow), partsARound)) }

// divide returns the parts of all wide spans, still without counts.
func (p *spread) divide() []span {
	wide := 0
	for _, s := range p.spans {
		if p.wide(s) {
			wide++
		}
	}
	parts := make([]span, 0, partsOf(p.rows)+2*wide)
	for _, s := range p.spans {
		if !p.wide(s) {
			continue
		}
		step := (s.most-s.least)/uint64(max(2, partsOf(p.rows)/wide)) + 1
		for from := s.least; ; from += step {
			if s.most-from < step {
				parts = append(parts, span{from, s.most, 0})
				break
			}
			parts = append(parts, span{from, from + step - 1, 0})
		}
	}
	return parts
}

// count returns how many of this member's values are in a span.
func (p *spread) count(s span) float64 {
	from, _ := slices.BinarySearch(p.keys, s.least)
	n, _ := slices.BinarySearch(p.keys[from:], s.most)
	for from+n < len(p.keys) && p.keys[from+n] == s.most {
		n++
	}
	return float64(n)
}

// replace replaces each divided span by those of its parts that have rows. It returns an error if the parts have more
// rows than their span: otherwise a faulty member could make the spans ever more.
func (p *spread) replace(parts []span) error {
	var spans []span
	for _, s := range p.spans {
		if !p.wide(s) {
			spans = append(spans, s)
			continue
		}
		left := s.rows
		for len(parts) > 0 && parts[0].most <= s.most {
			if left -= parts[0].rows; parts[0].rows > 0 {
				spans = append(spans, parts[0])
			}
			parts = parts[1:]
		}
		if left < 0 {
			return fmt.Errorf("%w: parts of a column hold %g rows more than their whole, %g", table.ErrSum, -left, s.rows)
		}
	}
	p.spans = spans
	return nil
}

// value is the number that a key stands for.
func (p *spread) value(key uint64) float64 {
	whole := key << p.zeros
	if whole>>63 != 0 {
		return math.Float64frombits(whole &^ (1 << 63))
	}
	return math.Float64frombits(^(whole | 1<<p.zeros - 1))
}

// edges returns the last value of each bin except the last bin.
func (p *spread) edges() []float64 {
	var edges []float64
	left, within := p.rows, 0.0
	for i := range max(len(p.spans)-1, 0) {
		within += p.spans[i].rows
		bins := float64(maxBins - len(edges)) // how many bins are still to be filled
		if len(p.spans) > maxBins && (within < left/bins || bins == 1) {
			continue
		}
		left, within = left-within, 0
		edges = append(edges, between(p.value(p.spans[i].most), p.value(p.spans[i+1].least)))
	}
	return edges
}

// between is a number from least to below next with as few digits as possible.
func between(least, next float64) float64 {
	middle := least/2 + next/2
	for digits := range 17 {
		x, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'g', digits+1, 64), 64)
		if err == nil && x >= least && x < next {
			return x
		}
	}
	return least
}

// findEdges returns the edges of each number column; nil for other columns.
func findEdges(ctx context.Context, flock table.Flock, b *table.Batch, all rowsSummary) ([][]float64, error) {
	s := all.Columns
	edges, atOnce := make([][]float64, len(s)), columnsAtOnce*partsARound/partsOf(float64(all.Rows))
	var counts []float64
	for from := 0; from < len(s); from += atOnce {
		to := min(from+atOnce, len(s))
		spreads := make([]*spread, 0, to-from)
		for c := from; c < to; c++ {
			spreads = append(spreads, newSpread(&b.Columns[c], s[c]))
		}
		for round := 0; ; round++ {
			var parts [][]span
			counts = counts[:0]
			for _, p := range spreads {
				parts = append(parts, p.divide())
				for _, part := range parts[len(parts)-1] {
					counts = append(counts, p.count(part))
				}
			}
			if len(counts) == 0 {
				break
			}
			part := fmt.Sprintf("edges%d/%d", from, round)
			sum, _, err := flock.Sum(ctx, part, counts)
			if err = cmp.Or(err, table.Counts(part, float64(all.Rows), sum...)); err != nil {
				return nil, fmt.Errorf("learn: counting values for the edges of bins: %w", err)
			}
			for i, p := range spreads {
				for j := range parts[i] {
					parts[i][j].rows = sum[j]
				}
				sum = sum[len(parts[i]):]
				if err := p.replace(parts[i]); err != nil {
					return nil, fmt.Errorf("learn: counting values, %s: %w", part, err)
				}
			}
		}
		for i, p := range spreads {
			edges[from+i] = p.edges()
		}
	}
	return edges, nil
}
