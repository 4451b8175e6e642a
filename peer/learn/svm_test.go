package learn

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// The optimum is where the slope of C × squared hinge losses + ½|weights|² is 0.
func TestSVMIsAtTheOptimum(t *testing.T) {
	for _, classes := range []int{2, 3} {
		rows := mixedRows(300, classes, 21)
		l := &LinearSVM{C: 0.5, Tolerance: 1e-9}
		m := fitAlone(t, l, rows).(*SVMModel)
		margins, err := m.Margins.apply(nil, rows.Features)
		if err != nil {
			t.Fatal(err)
		}
		k := len(m.Margins.Intercept)
		for o := range k {
			for j, c := range rows.Features.Columns {
				slope, size := m.Margins.Weights[o][j], 0.0
				for i, y := range rows.Target {
					side := -1.0
					if int(y) == o && k > 1 || k == 1 && y == 1 {
						side = 1
					}
					slope -= l.C * rows.weight(i) * 2 * max(0, 1-side*margins[i*k+o]) * side * c.Numbers[i]
					size += rows.weight(i) * math.Abs(c.Numbers[i])
				}
				if math.Abs(slope) > 1e-6*size {
					t.Errorf("%d classes: the slope by %q is %v", classes, c.Name, slope)
				}
			}
		}
	}
}

func TestSVMOfThreeMembers(t *testing.T) {
	for _, classes := range []int{2, 3} {
		sameAsAlone(t, &LinearSVM{Tolerance: 1e-9}, mixedRows(400, classes, 22), 1e-5)
	}
}

// The probabilities are not only in order: of rows at 30 %, 30 % are of the class.
func TestSVMProbabilitiesAreFrequencies(t *testing.T) {
	rows := mixedRows(4000, 2, 23)
	rows.Weight = nil
	p := predict(t, fitAlone(t, &LinearSVM{}, rows), rows)
	var sum, hits, n float64
	for i, y := range rows.Target {
		if q := p[2*i+1]; q > 0.2 && q < 0.4 {
			sum, hits, n = sum+q, hits+y, n+1
		}
	}
	if n < 200 || math.Abs(sum-hits)/n > 0.05 {
		t.Errorf("%v rows have probabilities of %v in the mean, %v of them are of the class", n, sum/n, hits/n)
	}
}

func TestClassifiersWantClasses(t *testing.T) {
	rows := mixedRows(50, 0, 24)
	one := mixedRows(50, 2, 24)
	one.Classes, one.Target = []string{"only"}, make([]float64, 50)
	for _, l := range []Learner{&Logistic{}, &LinearSVM{}, &GaussianNB{}, &BernoulliNB{}, &MultinomialNB{}} {
		counts := l
		if _, ok := l.(*MultinomialNB); ok {
			rows, one = positive(rows), positive(one)
		}
		_, err := counts.Fit(t.Context(), table.Alone{}, rows)
		wantError(t, err, "wants classes")
		if _, err := counts.Fit(t.Context(), table.Alone{}, one); !errors.Is(err, ErrOneClass) {
			t.Errorf("%T of one class: %v", l, err)
		}
	}
}

// positive are rows of which no number is negative.
func positive(rows Rows) Rows {
	b := *rows.Features
	b.Columns = nil
	for _, c := range rows.Features.Columns {
		c.Numbers = slices.Clone(c.Numbers)
		for i, x := range c.Numbers {
			c.Numbers[i] = math.Floor(math.Abs(x))
		}
		b.Columns = append(b.Columns, c)
	}
	rows.Features = &b
	return rows
}
