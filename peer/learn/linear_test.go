package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/peer/table"
)

// leastSquares solves by QR, the penalty as rows of their own: an oracle. The columns are taken
// about their means first, of which the intercept is free.
func leastSquares(rows Rows, ridge float64) (weights []float64, intercept float64) {
	n, d := rows.count(), len(rows.Features.Columns)
	mean, all := make([]float64, d+1), 0.0
	for i := range n {
		w := rows.weight(i)
		all += w
		for j, c := range rows.Features.Columns {
			mean[j] += w * c.Numbers[i]
		}
		mean[d] += w * rows.Target[i]
	}
	a, b := mat.NewDense(n+d, d, nil), mat.NewDense(n+d, 1, nil)
	for i := range n {
		root := math.Sqrt(rows.weight(i))
		for j, c := range rows.Features.Columns {
			a.Set(i, j, root*(c.Numbers[i]-mean[j]/all))
		}
		b.Set(i, 0, root*(rows.Target[i]-mean[d]/all))
	}
	for j := range d {
		a.Set(n+j, j, math.Sqrt(ridge))
	}
	var x mat.Dense
	if err := x.Solve(a, b); err != nil && !errors.As(err, new(mat.Condition)) {
		panic(err)
	}
	intercept = mean[d] / all
	for j := range d {
		weights = append(weights, x.At(j, 0))
		intercept -= x.At(j, 0) * mean[j] / all
	}
	return weights, intercept
}

func TestLinearIsLeastSquares(t *testing.T) {
	for _, ridge := range []float64{0, 1, 1e3} {
		rows := mixedRows(600, 0, 11)
		if ridge == 0 { // the oracle cannot do without
			rows.Features.Columns = append(rows.Features.Columns[:3:3], rows.Features.Columns[4:]...)
		}
		m := fitAlone(t, &Linear{Ridge: ridge}, rows).(*LinearModel)
		weights, intercept := leastSquares(rows, ridge)
		for j, want := range weights {
			if got := m.Weights[0][j]; math.Abs(got-want) > 1e-8*max(1, math.Abs(want)) {
				t.Errorf("ridge %v: the weight of %q is %v, want %v", ridge, m.Columns[j], got, want)
			}
		}
		if math.Abs(m.Intercept[0]-intercept) > 1e-8*math.Abs(intercept) {
			t.Errorf("ridge %v: the intercept is %v, want %v", ridge, m.Intercept[0], intercept)
		}
	}
}

// Three members, one without rows, get what one with all rows gets, to 1e-9.
// masked is a flock in which numbers are rounded as sums with masks round them.
type masked struct{ table.Flock }

func (m masked) Sum(ctx context.Context, name string, vector []float64) ([]float64, int, error) {
	top, peers, err := m.Max(ctx, name+" exponent", []float64{float64(mask.Exponent(vector...))})
	if err != nil {
		return nil, 0, err
	}
	p := mask.PointOf(int(top[0]), peers)
	if !p.Enough(len(vector)) {
		return nil, 0, fmt.Errorf("%q holds numbers up to 2^%g", name, top[0])
	}
	return m.Flock.Sum(ctx, name, p.Decode(p.Encode(vector), len(vector)))
}

// TestLinearOfTimesWithMasks: a column of times in nanoseconds does not cost the others their rows where one sum holds the
// totals of all columns and the number of rows.
func TestLinearOfTimesWithMasks(t *testing.T) {
	table.Together(3, func(flock table.Flock, member int) {
		rng := rand.New(rand.NewPCG(uint64(member), 1))
		times, x, y := make([]float64, 5000), make([]float64, 5000), make([]float64, 5000)
		for i := range x {
			times[i], x[i] = 1.7e18+1e9*float64(i), rng.Float64()
			y[i] = 3*x[i] + 1
		}
		rows := Rows{Features: &table.Batch{Rows: len(x), Columns: []table.Column{{Name: "time", Numbers: times}, {Name: "x", Numbers: x}}}, Target: y}
		m, err := (&Linear{}).Fit(t.Context(), masked{flock}, rows)
		if err != nil {
			t.Errorf("member %d: %v", member, err)
			return
		}
		if w := m.(*LinearModel).Weights[0]; math.Abs(w[1]-3) > 1e-6 {
			t.Errorf("member %d: the weights are %v, want 0 and 3", member, w)
		}
	})
}

func TestLinearOfThreeMembers(t *testing.T) {
	for _, ridge := range []float64{0, 1} {
		sameAsAlone(t, &Linear{Ridge: ridge}, mixedRows(500, 0, 12), 1e-9)
		sameAsAlone(t, &Linear{Ridge: ridge}, mixedRows(500, 2, 12), 1e-9)
		sameAsAlone(t, &Linear{Ridge: ridge}, mixedRows(500, 4, 12), 1e-9)
	}
}

// A target 1e9 away from 0 costs no more digits than it has to.
func TestLinearOfAFarTarget(t *testing.T) {
	rows := mixedRows(300, 0, 13)
	near := fitAlone(t, &Linear{}, rows).(*LinearModel)
	for i := range rows.Target {
		rows.Target[i] += 1e9
	}
	far := fitAlone(t, &Linear{}, rows).(*LinearModel)
	for j, want := range near.Weights[0] {
		if got := far.Weights[0][j]; math.Abs(got-want) > 1e-4*max(1e-3, math.Abs(want)) {
			t.Errorf("the weight of %q is %v, %v before", far.Columns[j], got, want)
		}
	}
}

// A class target is learned as 1 and 0: its order is the line's, beyond 0 and 1 too.
func TestLinearClassesKeepTheLinesOrder(t *testing.T) {
	rows := mixedRows(500, 2, 14)
	m := fitAlone(t, &Linear{Ridge: 1}, rows).(*LinearClassModel)
	lines, err := m.apply(nil, rows.Features)
	if err != nil {
		t.Fatal(err)
	}
	p, beyond := predict(t, m, rows), 0
	for i := range lines {
		if lines[i] < 0 || lines[i] > 1 {
			beyond++
		} else if lines[i] > edge && lines[i] < 1-edge && p[2*i+1] != lines[i] {
			t.Errorf("probability %v of line %v", p[2*i+1], lines[i])
		}
		for o := range i {
			if lines[i] < lines[o] && p[2*i+1] >= p[2*o+1] {
				t.Fatalf("lines %v and %v have probabilities %v and %v", lines[i], lines[o], p[2*i+1], p[2*o+1])
			}
		}
	}
	if beyond == 0 {
		t.Error("no line is beyond 0 and 1: nothing was tested")
	}
}

func TestLinearNamesTheColumnThatFollows(t *testing.T) {
	rows := mixedRows(200, 0, 15)
	twice := table.Column{Name: "twice", Numbers: make([]float64, 200)}
	for i := range twice.Numbers {
		twice.Numbers[i] = 2*rows.Features.Columns[0].Numbers[i] - 1e-4*rows.Features.Columns[1].Numbers[i] + 3
	}
	rows.Features.Columns = append(rows.Features.Columns, twice)
	for _, err := range failParts(t, &Linear{}, threeParts(rows)) {
		if !errors.Is(err, ErrSingular) {
			t.Errorf("%v", err)
		}
		wantError(t, err, `column "twice"`, "ridge")
	}
	m := sameAsAlone(t, &Linear{Ridge: 1}, rows, 1e-7).(*LinearModel)
	if m.Weights[0][3] != 0 {
		t.Errorf("the constant column has weight %v", m.Weights[0][3])
	}
	if _, err := (&Linear{Ridge: -1}).Fit(t.Context(), table.Alone{}, rows); err == nil {
		t.Error("a negative ridge is taken")
	}
}
