package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

// What members pack, sums, and is unpacked is the sum of their cells, up to the largest that the
// number of rows lets them have.
func TestPackedCellsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		all := int64(1) << rapid.IntRange(2, 26).Draw(t, "rows of all")
		b := &binned{all: all}
		classes := rapid.SampledFrom([]int{1, 3}).Draw(t, "classes")
		d := newGradients(b, classes, rapid.Bool().Draw(t, "weighted"))
		if classes > 1 {
			d.class = []uint8{}
		} else if rapid.Bool().Draw(t, "counts") {
			d.signed, d.gBits = false, 0
		}
		rows := 1 + rng.Int64N(all)
		p, members, bins := packingFor(d, float64(rows)), 1+rng.IntN(3), 1+rng.IntN(9)
		s := &histograms{}
		want, sum := make([]float64, bins*d.stride()), []float64(nil)
		for m := range members {
			cells := make([]cell, bins*classes)
			for i := range cells {
				n := rng.Int64N(rows/int64(members)/int64(len(cells)) + 1)
				g := n << d.gBits * int64(rng.IntN(2)) // the largest
				if d.signed && rng.IntN(2) == 0 {
					g = -g
				}
				h := n << d.hBits
				if !d.weighted {
					h = 0
				}
				if classes > 1 {
					g = 0
				}
				cells[i] = cell{G: g, HN: uint64(h)<<d.shift | uint64(n)}
				out := want[i/classes*d.stride():]
				weight := float64(h)
				if !d.weighted {
					weight = float64(n)
				}
				out[0] += float64(n)
				out[1] += weight
				if classes > 1 {
					out[2+i%classes] += weight
				} else {
					out[2] += float64(g)
				}
			}
			packed := s.pack(nil, d, p, cells)
			if m == 0 {
				sum = packed
				continue
			}
			for i, x := range packed {
				sum[i] += x
			}
		}
		got := make([]float64, len(want))
		if rest := s.unpack(got, sum, d, p); len(rest) != 0 || !slices.Equal(got, want) {
			t.Fatalf("unpacked %v (%d left), want %v", got, len(rest), want)
		}
	})
}

// edgesOf are the edges of one column of numbers.
func edgesOf(t *testing.T, values []float64) []float64 {
	t.Helper()
	rows := Rows{Features: &table.Batch{Rows: len(values), Columns: []table.Column{{Name: "x", Numbers: values}}}, Target: make([]float64, len(values))}
	b, err := binRows(t.Context(), table.Alone{}, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.columns[0].edges
}

// TestFewValuesHaveABinEach has values that lie close together, far from 0 and across it.
func TestFewValuesHaveABinEach(t *testing.T) {
	values := []float64{-1e300, -7, -6.999999999999999, -1e-300, 0, 1e-300, 1, 2, 1e9, 1e9 + 1e-6, 1e300}
	rng := rand.New(rand.NewPCG(1, 1))
	var column []float64
	for range 3000 {
		column = append(column, values[rng.IntN(len(values))])
	}
	edges := edgesOf(t, append(column, math.NaN(), math.Inf(1)))
	if len(edges) != len(values)-1 {
		t.Fatalf("%d edges between %d values: %v", len(edges), len(values), edges)
	}
	for i, e := range edges {
		if e < values[i] || e >= values[i+1] {
			t.Errorf("edge %v between %v and %v", e, values[i], values[i+1])
		}
	}
}

// TestManyValuesHaveEvenBins has continuous values, and one that a third of all rows have.
func TestManyValuesHaveEvenBins(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const n = 60_000
	column := make([]float64, n)
	for i := range column {
		if column[i] = math.Exp(4 * rng.NormFloat64()); i%3 == 0 {
			column[i] = 5
		}
	}
	edges := edgesOf(t, column)
	counts := make([]int, len(edges)+1)
	c := binColumn{edges: edges, bins: len(edges) + 2}
	for _, x := range column {
		counts[c.binOf(x)]++
	}
	slices.Sort(counts)
	if len(counts) < 230 || counts[len(counts)-2] > 2*n/maxBins || counts[len(counts)-1] > n/3+2*n/maxBins {
		t.Errorf("%d bins, the largest of %v rows", len(counts), counts[len(counts)-3:])
	}
}

// flightLike has as many rows and columns as a tenth of the flights.
func flightLike() Rows {
	rng := rand.New(rand.NewPCG(4, 4))
	rows := late(23_000)
	for c := range 18 {
		column := table.Column{Name: fmt.Sprint("x", c)}
		for range rows.Features.Rows {
			column.Numbers = append(column.Numbers, math.Floor(rng.NormFloat64()*float64(int(1)<<c)))
		}
		rows.Features.Columns = append(rows.Features.Columns, column)
	}
	return rows
}

func BenchmarkBoost(b *testing.B) {
	rows := flightLike()
	binned, err := binRows(b.Context(), table.Alone{}, rows, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := Boost{Leaves: 31, MinRows: 20, Rate: 0.1}
	f, err := newBoosting(b.Context(), s, quiet{}, binned, rows)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for round := 0; b.Loop(); round++ {
		if err := f.round(b.Context(), round); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForest(b *testing.B) {
	rows := flightLike()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Forest{Trees: 8}).Fit(b.Context(), table.Alone{}, rows); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTreesPredict(b *testing.B) {
	rows := flightLike()
	m, err := Boost{}.Fit(b.Context(), table.Alone{}, rows)
	if err != nil {
		b.Fatal(err)
	}
	var dst []float64
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = m.Predict(dst[:0], rows.Features); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows.Features.Rows), "ns/row")
}

// quiet is a flock of one that copies nothing.
type quiet struct{ table.Alone }

func (quiet) Sum(_ context.Context, _ string, vector []float64) ([]float64, int, error) {
	return vector, 1, nil
}

// TestLanesAddUp adds rows to all columns at once, of which several are in a lane, and to each by itself.
func TestLanesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		rows := rapid.IntRange(1, 3000).Draw(t, "rows")
		b := &binned{rows: rows, all: int64(rows)}
		for _, bins := range rapid.SliceOfN(rapid.IntRange(1, 256), 1, 12).Draw(t, "bins") {
			b.columns = append(b.columns, binColumn{bins: bins})
			b.bins = append(b.bins, make([]uint8, rows))
			for i := range rows {
				b.bins[len(b.bins)-1][i] = uint8(rng.IntN(bins))
			}
		}
		d := newGradients(b, 1, rapid.Bool().Draw(t, "weighted"))
		var list []int32
		for i := range rows {
			d.set(i, float64(rng.IntN(1001)-500), float64(rng.IntN(9)))
			if rng.IntN(3) > 0 {
				list = append(list, int32(i))
			}
		}
		s, l := newHistograms(b), &layout{columns: b.allColumns(nil)}
		s.arrange(l)
		for range 2 { // the second time what is left of the first must not count
			got := s.build(d, l, list)
			for c := range b.columns {
				want := make([]cell, b.columns[c].bins)
				for _, row := range list {
					to := &want[b.bins[c][row]]
					to.G += int64(d.rows[row].g)
					to.HN += uint64(d.rows[row].h)<<d.shift | 1
				}
				if of := got[l.offset[c]:l.offset[c+1]]; !slices.Equal(of, want) {
					t.Fatalf("column %d of %d bins: %v, want %v", c, len(want), of, want)
				}
			}
		}
	})
}
