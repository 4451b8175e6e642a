package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// slopes is the gradient of C × (sum of losses) by each weight and, last, the intercept, by its
// plainest formula: an oracle.
func slopes(l *Logistic, m *LogisticModel, rows Rows) [][]float64 {
	c := l.C
	if c == 0 {
		c = 1
	}
	k := len(m.Intercept)
	g := make([][]float64, k)
	for o := range g {
		g[o] = make([]float64, len(m.Columns)+1)
	}
	p, _ := m.Predict(nil, rows.Features)
	for i, y := range rows.Target {
		for o := range k {
			class := o
			if k == 1 {
				class = 1
			}
			miss := p[i*m.Outputs()+class]
			if int(y) == class {
				miss--
			}
			miss *= c * rows.weight(i)
			for j := range m.Columns {
				g[o][j] += miss * rows.Features.Columns[j].Numbers[i]
			}
			g[o][len(m.Columns)] += miss
		}
	}
	return g
}

// The optimum is where the slope of loss and penalty is 0, or, at a weight of 0, where the
// loss's is no steeper than the absolute penalty.
func TestLogisticIsAtTheOptimum(t *testing.T) {
	for _, classes := range []int{2, 4} {
		for _, l := range []*Logistic{{Tolerance: 1e-9}, {Tolerance: 1e-9, C: 0.05}, {Tolerance: 1e-9, C: 0.05, L1Ratio: 0.7}, {Tolerance: 1e-9, C: 0.01, L1Ratio: 1}} {
			rows := mixedRows(400, classes, 5)
			m := fitAlone(t, l, rows).(*LogisticModel)
			if !m.Converged {
				t.Errorf("%+v: not converged after %d rounds", l, m.Rounds)
			}
			zeros := 0
			for o, g := range slopes(l, m, rows) {
				for j, slope := range g {
					weight, scale := 0.0, total(rows.Weight)
					if j < len(m.Columns) {
						weight = m.Weights[o][j]
						scale *= math.Abs(rows.Features.Columns[j].Numbers[0]) + 1
					}
					slope += (1 - l.L1Ratio) * weight
					switch {
					case weight != 0:
						slope += math.Copysign(l.L1Ratio, weight)
					case j < len(m.Columns):
						zeros++
						slope = max(math.Abs(slope)-l.L1Ratio, 0)
					}
					if math.Abs(slope) > 1e-6*(1+scale) {
						t.Errorf("%d classes, %+v: the slope by %v is %v", classes, l, append(m.Columns, "intercept")[j], slope)
					}
				}
			}
			if l.L1Ratio == 1 && zeros < 2 {
				t.Errorf("%d classes, %+v: %d weights are 0; want those of no use to be", classes, l, zeros)
			}
		}
	}
}

// Three members, one without rows, get what one with all rows gets, to 1e-7.
func TestLogisticOfThreeMembers(t *testing.T) {
	for _, classes := range []int{2, 3} {
		sameAsAlone(t, &Logistic{Tolerance: 1e-9}, mixedRows(200, classes, 6), 1e-7)
		sameAsAlone(t, &Logistic{Tolerance: 1e-9, C: 0.1, L1Ratio: 0.5}, mixedRows(200, classes, 6), 1e-7)
	}
}

func TestLogisticOfSeparableRowsStaysFinite(t *testing.T) {
	x := []float64{-3, -2, -1, 1, 2, 3}
	rows := Rows{Features: &table.Batch{Rows: 6, Columns: []table.Column{{Name: "x", Numbers: x}}},
		Target: []float64{0, 0, 0, 1, 1, 1}, Classes: []string{"no", "yes"}}
	m := fitAlone(t, &Logistic{}, rows).(*LogisticModel)
	// scikit-learn 1.9: LogisticRegression().fit(x, y).coef_
	if w := m.Weights[0][0]; !m.Converged || math.Abs(w-1.10440428) > 1e-4 {
		t.Errorf("weight %v after %d rounds, converged %v", w, m.Rounds, m.Converged)
	}
	if m = fitAlone(t, &Logistic{C: 1e12}, rows).(*LogisticModel); !(m.Weights[0][0] < 1e3) {
		t.Errorf("nearly without a penalty: weight %v", m.Weights[0][0])
	}
}

func TestLogisticEndsAfterItsIterations(t *testing.T) {
	m := fitAlone(t, &Logistic{Iterations: 2}, mixedRows(100, 2, 7)).(*LogisticModel)
	if m.Converged || m.Rounds != 2 {
		t.Errorf("%+v; want 2 rounds and no convergence", m.Descent)
	}
}

func TestLogisticOfRowsThatCannotBe(t *testing.T) {
	good := mixedRows(60, 2, 8)
	spoil := func(change func(r *Rows)) []Rows {
		parts := threeParts(good)
		change(&parts[0])
		return parts
	}
	nan := spoil(func(r *Rows) { r.Features.Columns[2].Numbers[1] = math.NaN() })
	errs := failParts(t, &Logistic{}, nan)
	wantError(t, errs[0], fmt.Sprintf(`column "far" has NaN in row %d`, nan[0].Features.Key(1)), "impute")
	for _, err := range errs[1:] {
		if !errors.Is(err, table.ErrMember) {
			t.Errorf("a member whose rows are sound: %v", err)
		}
	}
	for _, err := range failParts(t, &Logistic{}, spoil(func(r *Rows) { r.Features.Columns[0].Name = "other" })) {
		if !errors.Is(err, table.ErrUnlike) {
			t.Errorf("another member's columns: %v", err)
		}
	}
	one := good.Select(func(row int) bool { return good.Target[row] == 1 })
	for _, l := range []Learner{&Logistic{}, &GaussianNB{}, Boost{}} {
		for _, err := range failParts(t, l, threeParts(one)) {
			if !errors.Is(err, ErrOneClass) || !errors.Is(err, table.ErrOneClass) {
				t.Errorf("%T of one class: %v", l, err)
			}
			wantError(t, err, `of one class, "class1"`)
		}
	}
	none := good.Select(func(int) bool { return false })
	if _, err := (&Logistic{}).Fit(t.Context(), table.Alone{}, none); !errors.Is(err, ErrNoRows) {
		t.Errorf("no rows: %v", err)
	}
	for name, l := range map[string]*Logistic{"C": {C: -1}, "ratio": {L1Ratio: 2}, "tolerance": {Tolerance: -1}, "iterations": {Iterations: -1}} {
		if _, err := l.Fit(t.Context(), table.Alone{}, good); err == nil {
			t.Errorf("a bad %s is taken", name)
		}
	}
}

// dying is a flock whose sums end with their context after some.
type dying struct {
	table.Alone
	left   int
	cancel func()
}

func (d *dying) Sum(ctx context.Context, name string, v []float64) ([]float64, int, error) {
	if d.left--; d.left == 0 {
		d.cancel()
	}
	return d.Alone.Sum(ctx, name, v)
}

func TestAnEndedContextEndsAFit(t *testing.T) {
	for left := 1; left < 6; left++ {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := (&Logistic{}).Fit(ctx, table.Scope(&dying{left: left, cancel: cancel}, "f"), mixedRows(60, 2, 9)); !errors.Is(err, context.Canceled) {
			t.Errorf("at sum %d: %v", left, err)
		}
	}
}

func BenchmarkLogisticGradient(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := mixedRows(20_000, 2, 1)
	for j := range 100 {
		c := table.Column{Name: string(rune(j)), Numbers: make([]float64, rows.count())}
		for i := range c.Numbers {
			c.Numbers[i] = float64(rng.IntN(100) / 99)
		}
		rows.Features.Columns = append(rows.Features.Columns, c)
	}
	m, err := newMatrix(b.Context(), table.Alone{}, rows, nil)
	if err != nil {
		b.Fatal(err)
	}
	w, g := make([]float64, len(m.columns)+1), make([]float64, len(m.columns)+1)
	for b.Loop() {
		m.pass(1, w, g, func(row int, margins []float64) { logLoss(margins, int(rows.Target[row])) })
	}
}

// A column whose deviation squared is no number counts as constant, and does not keep the others from their weights.
func TestHardlyAnyDeviation(t *testing.T) {
	for _, learner := range []Learner{Logistic{}, Logistic{L1Ratio: 0.5}, LinearSVM{}, Linear{}} {
		rows := sensorRows(100, 2, 1, 1, 9)
		want := predict(t, fitAlone(t, learner, rows), rows)
		tiny := table.Column{Name: "tiny", Numbers: make([]float64, 100)}
		for i := range tiny.Numbers {
			tiny.Numbers[i] = 1e-160 * float64(i%7)
		}
		rows.Features.Columns = append(rows.Features.Columns, tiny)
		if got := predict(t, fitAlone(t, learner, rows), rows); !slices.Equal(got, want) {
			t.Errorf("%T: %v, want %v", learner, got[:4], want[:4])
		}
	}
	if _, err := (Logistic{C: 1e-90}).Fit(t.Context(), table.Alone{}, sensorRows(9, 2, 1, 1, 9)); err == nil {
		t.Error("a C of 1e-90 is taken")
	}
}

// A row of numbers so large that outputs are no numbers is an error that tells the row.
func TestRowsTooLargeToPredict(t *testing.T) {
	for learner, classes := range map[Learner]int{Linear{}: 0, Logistic{}: 3, LinearSVM{}: 3} {
		m := fitAlone(t, learner, sensorRows(100, classes, 1, 1, 9))
		rows := sensorRows(3, classes, 1, 1, 9)
		rows.Features.First = 40
		for j := range rows.Features.Columns {
			rows.Features.Columns[j].Numbers[1] = math.MaxFloat64
		}
		p, err := m.Predict(nil, rows.Features)
		if !errors.Is(err, table.ErrNumbers) {
			t.Errorf("%T: %v, %v", learner, p, err)
		}
		wantError(t, err, "row 41")
	}
}

// Errors tell a row by its number in its source, not by its place among those that were drawn of it.
func TestErrorsTellRowsOfTheSource(t *testing.T) {
	for what, spoil := range map[string]func(r *Rows){
		"target": func(r *Rows) { r.Target[1] = 1e100 }, "weight": func(r *Rows) { r.Weight = []float64{1, -1, 1} },
		"column": func(r *Rows) { r.Features.Columns[0].Numbers[1] = math.NaN() }, "class": func(r *Rows) { r.Classes, r.Target = []string{"a", "b"}, []float64{0, 2, 1} },
	} {
		rows := sensorRows(3, 0, 1, 1, 9)
		rows.Features.First = 40
		spoil(&rows)
		_, err := Linear{}.Fit(t.Context(), table.Alone{}, rows)
		if wantError(t, err, "row 41"); t.Failed() {
			t.Fatal(what)
		}
	}
}
