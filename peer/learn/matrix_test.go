package learn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// The gradient of a pass, through dense columns, exceptions and their base, is that of plain
// loops over standardized rows.
func TestPassIsItsPlainLoops(t *testing.T) {
	rows := mixedRows(200, 2, 61)
	m, err := newMatrix(t.Context(), table.Alone{}, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.dense) != 4 || len(m.index) == 0 {
		t.Errorf("%d dense columns, %d exceptions; want both kinds", len(m.dense), len(m.index))
	}
	const k = 2
	d := len(m.columns)
	parameters, got, want := make([]float64, k*(d+1)), make([]float64, k*(d+1)), make([]float64, k*(d+1))
	for i := range parameters {
		parameters[i] = math.Sin(float64(i))
	}
	m.pass(k, parameters, got, func(row int, margins []float64) {
		for o := range margins {
			plain := parameters[o*(d+1)+d]
			for j, c := range rows.Features.Columns {
				plain += m.standard(j, c.Numbers[row]) * parameters[o*(d+1)+j]
			}
			if math.Abs(margins[o]-plain) > 1e-10 {
				t.Fatalf("row %d: margin %v, want %v", row, margins[o], plain)
			}
			margins[o] = math.Cos(float64(row + o))
			want[o*(d+1)+d] += margins[o]
			for j, c := range rows.Features.Columns {
				want[o*(d+1)+j] += margins[o] * m.standard(j, c.Numbers[row])
			}
		}
	})
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Errorf("the gradient by parameter %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// A number added to a column, however large, is the intercept's: it costs only the digits
// that the column itself has lost. A constant stays one.
func TestFarColumnsAreAsNearOnes(t *testing.T) {
	for _, learner := range []Learner{&Linear{}, &Logistic{Tolerance: 1e-9}, &GaussianNB{}} {
		t.Run(fmt.Sprintf("%T", learner), func(t *testing.T) {
			rows := mixedRows(1000, 2, 62)
			if _, ok := learner.(*GaussianNB); ok { // its smoothing is by the largest variance
				rows.Features.Columns = rows.Features.Columns[2:]
			}
			near := predict(t, fitAlone(t, learner, rows), rows)
			for _, c := range rows.Features.Columns {
				shift := 1e9
				if c.Name == "constant" {
					shift = 1e9 + 0.1
				}
				if c.Name != "small" {
					for i := range c.Numbers {
						c.Numbers[i] += shift
					}
				}
			}
			model := fitAlone(t, learner, rows)
			far := predict(t, model, rows)
			for i := range near {
				if math.Abs(near[i]-far[i]) > 2e-6 {
					t.Fatalf("prediction %d: %v near, %v far", i, near[i], far[i])
				}
			}
			if c, ok := model.(linearModel); ok {
				if j := slices.Index(c.linear().Columns, "constant"); c.linear().Weights[0][j] != 0 {
					t.Errorf("the constant has a weight of %v", c.linear().Weights[0][j])
				}
			}
		})
	}
}

// Adding up the same number many times rounds some of it away; it is a constant all the same.
func TestConstantOfManyRows(t *testing.T) {
	for _, value := range []float64{0.1, 1. / 3, 1e-3, 0.7, 1e9 + 0.3} {
		x := slices.Repeat([]float64{value}, 300_007)
		rows := Rows{Features: &table.Batch{Rows: len(x), Columns: []table.Column{{Name: "x", Numbers: x}}}, Target: x, Weight: make([]float64, len(x))}
		for i := range rows.Weight {
			rows.Weight[i] = 1 + math.Sin(float64(i))
		}
		m, err := newMatrix(t.Context(), table.Alone{}, rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !m.constant(0) || math.Abs(m.mean[0]-value) > 1e-15*value {
			t.Errorf("%v has mean %v and deviation %v", value, m.mean[0], m.scale[0])
		}
	}
}

// Members keep a column's exceptions from the value that most of their own rows have: where that
// is another at each, sums are of the same all the same.
func TestMembersOfUnlikeBases(t *testing.T) {
	for _, learner := range []Learner{&Linear{Ridge: 1}, &Logistic{Tolerance: 1e-9}} {
		rows := mixedRows(400, 2, 63)
		rare := rows.Features.Find("rare")
		models := make([]Model, 2)
		table.Together(2, func(flock table.Flock, i int) {
			var err error
			part := rows.Select(func(row int) bool { return rare.Numbers[row] == float64(i) })
			if models[i], err = learner.Fit(t.Context(), table.Scope(flock, "f"), part); err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			t.FailNow()
		}
		a, b := predict(t, fitAlone(t, learner, rows), rows), predict(t, models[0], rows)
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-7 {
				t.Fatalf("%T: prediction %d is %v alone, %v by two", learner, i, a[i], b[i])
			}
		}
	}
}

// Only the last steps are remembered, however many there are.
func TestMemoryIsBounded(t *testing.T) {
	s := minimum{}
	for i := range 50 {
		s.remember([]float64{float64(i + 1)}, []float64{1})
	}
	if len(s.steps) != memorySize || s.steps[0][0] != 41 {
		t.Errorf("%d steps, from %v on", len(s.steps), s.steps[0])
	}
	s.remember([]float64{1}, []float64{-1})
	if len(s.steps) != memorySize || s.steps[memorySize-1][0] != 50 {
		t.Error("a step along which the function curves downwards is remembered")
	}
}
