package fit

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Standardized columns are those of the pooled rows to 1e-9, whoever holds which row: peers
// without rows, constant columns, values missing and offsets of 1e9 included.
func TestStandardizedAsPooled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers, count := rapid.IntRange(1, 5).Draw(t, "peers"), rapid.IntRange(1, 40).Draw(t, "rows")
		offset := rapid.SampledFrom([]float64{0, 0.1, -1e9, 1e9 + 0.3}).Draw(t, "offset")
		constant := rapid.Bool().Draw(t, "constant")
		var all []float64
		parts := make([][]float64, peers)
		for row := range count {
			x := offset
			if !constant {
				x += rapid.Float64Range(-10, 10).Draw(t, "x")
			}
			if row > 0 && rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
				x = math.NaN()
			}
			peer := rapid.IntRange(0, peers-1).Draw(t, "peer")
			all, parts[peer] = append(all, x), append(parts[peer], x)
		}
		fitted, errs := make([][]byte, peers), make([]error, peers)
		table.Together(peers, func(flock table.Flock, peer int) {
			b := &table.Batch{Rows: len(parts[peer]), Columns: []table.Column{{Name: "x", Numbers: parts[peer]}}}
			s := prepare.Pipeline{Input: table.Schema{Fields: []table.Field{{Name: "x"}}}, Stages: prepare.Usual{Floor: 1}.Numbers()}
			if errs[peer] = s.Fit(t.Context(), table.Scope(flock, "p"), table.InMemory(b)); errs[peer] == nil {
				fitted[peer], errs[peer] = json.Marshal(s)
			}
		})
		for peer, err := range errs {
			if err != nil || string(fitted[peer]) != string(fitted[0]) {
				t.Fatalf("peer %d: %v, %s", peer, err, fitted[peer])
			}
		}
		var s prepare.Pipeline
		if err := json.Unmarshal(fitted[0], &s); err != nil {
			t.Fatal(err)
		}
		b, err := s.Transform(&table.Batch{Rows: len(all), Columns: []table.Column{{Name: "x", Numbers: all}}})
		if err != nil {
			t.Fatal(err)
		}
		for row, want := range pooled(all) {
			if got := b.Columns[0].Numbers[row]; math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
				t.Fatalf("row %d is %v, want %v", row, got, want)
			}
		}
	})
}

// pooled standardizes values with all digits; what is missing is the mean.
func pooled(values []float64) []float64 {
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(500).SetFloat64(x) }
	mean, there := exact(0), 0.0
	for _, x := range values {
		if !math.IsNaN(x) {
			mean.Add(mean, exact(x))
			there++
		}
	}
	mean.Quo(mean, exact(there))
	off, squares := make([]float64, len(values)), exact(0)
	for i, x := range values {
		if !math.IsNaN(x) {
			d := new(big.Float).Sub(exact(x), mean)
			off[i], _ = d.Float64()
			squares.Add(squares, d.Mul(d, d))
		}
	}
	variance, _ := squares.Quo(squares, exact(there)).Float64()
	for i := range off {
		if variance > 0 {
			off[i] /= math.Sqrt(variance)
		}
	}
	return off
}
