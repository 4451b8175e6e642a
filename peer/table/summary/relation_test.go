package summary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Relations are those of a table of counts that is worked out by hand, and what has nothing to do with the target is unrelated.
func TestRelations(t *testing.T) {
	var a, z, other []string
	for cell, n := range map[string]int{"p0": 30, "p1": 10, "q0": 20, "q1": 40} {
		for i := range n {
			a, z, other = append(a, cell[:1]), append(z, cell[1:]), append(other, fmt.Sprint(i%2))
		}
	}
	rare := slices.Clone(z) // those of one class are all different, and so one cell
	for i := range rare {
		if rare[i] == "1" {
			rare[i] = fmt.Sprint("rare", i)
		}
	}
	s, err := together(t, Config{Target: "z"}, table.Held(batch(texts("a", a...), texts("z", z...), texts("other", other...), texts("same", slices.Repeat([]string{"one"}, 100)...), texts("rare", rare...))))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Columns[0].Relation
	// Expected are 20 and 20, 30 and 30: 100/20 twice, and 100/30 twice.
	information := 0.3*math.Log2(30./20) + 0.1*math.Log2(10./20) + 0.2*math.Log2(20./30) + 0.4*math.Log2(40./30)
	if math.Abs(r.ChiSquared-(10+20./3)) > 1e-9 || r.Freedom != 1 || math.Abs(r.Information-information) > 1e-12 || math.Abs(r.Share-(information-1/(200*math.Ln2))) > 1e-9 {
		t.Errorf("%+v; want information %v", r, information)
	}
	if r := s.Columns[4].Relation; r.Freedom != 1 || math.Abs(r.Information-1) > 1e-12 {
		t.Errorf("%+v of rare values", r)
	}
	if s.Columns[1].Relation != nil || fmt.Sprint(s.Unrelated(0.01)) != "[other same]" || fmt.Sprint(s.Unrelated(0.5)) != "[a other same]" {
		t.Errorf("%+v, unrelated %q", s, s.Unrelated(0.01))
	}
	if fmt.Sprint(s.Classes) != "[{0 50} {1 50}]" {
		t.Errorf("%v", s.Classes)
	}
}

// Correlations are Pearson's, over rows that have both, of the first columns of numbers.
func TestCorrelations(t *testing.T) {
	var columns []table.Column
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range MaxPaired + 3 {
		c := numbers(fmt.Sprint(i))
		for row := range 40 {
			if c.Numbers = append(c.Numbers, 1e6+rng.Float64()); (row+i)%9 == 0 {
				c.Numbers[row] = math.NaN()
			}
		}
		columns = append(columns, c)
	}
	s, err := together(t, Config{}, apart(batch(columns...), 2, func(row int) int { return row % 2 })...)
	if err != nil || len(s.Correlations) != MaxPaired*(MaxPaired-1)/2 || s.Uncorrelated != 3 {
		t.Fatalf("%d correlations, %d not, %v", len(s.Correlations), s.Uncorrelated, err)
	}
	for i, c := range s.Correlations {
		if i > 0 && math.Abs(c.R) > math.Abs(s.Correlations[i-1].R) {
			t.Errorf("%+v comes after %+v", c, s.Correlations[i-1])
		}
		b := batch(columns...)
		x, y := b.Find(c.Columns[0]).Numbers, b.Find(c.Columns[1]).Numbers
		var both [2][]float64
		for row := range x {
			if x[row] == x[row] && y[row] == y[row] {
				both[0], both[1] = append(both[0], x[row]), append(both[1], y[row])
			}
		}
		meanX, sx, _, _ := plain(both[0])
		meanY, sy, _, _ := plain(both[1])
		sum := 0.0
		for row := range both[0] {
			sum += (both[0][row] - meanX) * (both[1][row] - meanY)
		}
		if r := sum / float64(len(both[0])-1) / sx / sy; math.Abs(r-c.R) > 1e-8 || c.Rows != int64(len(both[0])) {
			t.Errorf("%+v, want %v of %d", c, r, len(both[0]))
		}
	}
}
