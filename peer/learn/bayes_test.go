package learn

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// likelihoods compares a model's probabilities with those of log likelihoods by an oracle.
func likelihoods(t *testing.T, model Model, rows Rows, of func(class int, x []float64) float64) {
	t.Helper()
	p := predict(t, model, rows)
	for i := range rows.count() {
		var x []float64
		for _, c := range rows.Features.Columns {
			x = append(x, c.Numbers[i])
		}
		want := make([]float64, len(rows.Classes))
		for class := range want {
			want[class] = of(class, x)
		}
		softmax(want)
		for class := range want {
			if got := p[i*len(want)+class]; math.Abs(got-want[class]) > 1e-7 {
				t.Fatalf("row %d, class %d: probability %v, want %v", i, class, got, want[class])
			}
		}
	}
}

// ofClass are the weighted mean and variance of a column in a class (all for class -1).
func ofClass(rows Rows, class, column int) (weight, mean, variance float64) {
	each := func(do func(w, x float64)) {
		for i, y := range rows.Target {
			if int(y) == class || class < 0 {
				do(rows.weight(i), rows.Features.Columns[column].Numbers[i])
			}
		}
	}
	each(func(w, x float64) { weight += w; mean += w * x })
	mean /= weight
	each(func(w, x float64) { variance += w * (x - mean) * (x - mean) / weight })
	return weight, mean, variance
}

func TestGaussianNBIsBayes(t *testing.T) {
	rows := mixedRows(300, 3, 31)
	all, largest := total(rows.Weight), 0.0
	for j := range rows.Features.Columns {
		_, _, variance := ofClass(rows, -1, j)
		largest = max(largest, variance)
	}
	likelihoods(t, fitAlone(t, &GaussianNB{}, rows), rows, func(class int, x []float64) float64 {
		sum := 0.0
		for j := range x {
			weight, mean, variance := ofClass(rows, class, j)
			variance += 1e-9 * largest
			if j == 0 {
				sum += math.Log(weight / all)
			}
			sum -= math.Log(2*math.Pi*variance)/2 + (x[j]-mean)*(x[j]-mean)/variance/2
		}
		return sum
	})
}

func TestBernoulliNBIsBayes(t *testing.T) {
	rows := mixedRows(300, 3, 32)
	l := &BernoulliNB{Alpha: 2, Threshold: 0.5}
	likelihoods(t, fitAlone(t, l, rows), rows, func(class int, x []float64) float64 {
		sum := 0.0
		for j := range x {
			with, all := 0.0, 0.0
			for i, y := range rows.Target {
				if int(y) == class {
					all += rows.weight(i)
					if rows.Features.Columns[j].Numbers[i] > 0.5 {
						with += rows.weight(i)
					}
				}
			}
			if j == 0 {
				sum += math.Log(all)
			}
			if p := (with + 2) / (all + 4); x[j] > 0.5 {
				sum += math.Log(p)
			} else {
				sum += math.Log(1 - p)
			}
		}
		return sum
	})
}

func TestMultinomialNBIsBayes(t *testing.T) {
	rows := positive(mixedRows(300, 3, 33))
	likelihoods(t, fitAlone(t, &MultinomialNB{}, rows), rows, func(class int, x []float64) float64 {
		counts, all, n := make([]float64, len(x)), 0.0, 0.0
		for i, y := range rows.Target {
			if int(y) == class {
				n += rows.weight(i)
				for j, c := range rows.Features.Columns {
					counts[j] += rows.weight(i) * c.Numbers[i]
					all += rows.weight(i) * c.Numbers[i]
				}
			}
		}
		sum := math.Log(n)
		for j := range x {
			sum += x[j] * math.Log((counts[j]+1)/(all+float64(len(x))))
		}
		return sum
	})
}

// Three members, one without rows, get what one with all rows gets, to 1e-9.
func TestNaiveBayesOfThreeMembers(t *testing.T) {
	for _, classes := range []int{2, 4} {
		rows := mixedRows(500, classes, 34)
		sameAsAlone(t, &GaussianNB{}, rows, 1e-9)
		sameAsAlone(t, &BernoulliNB{}, rows, 1e-9)
		sameAsAlone(t, &MultinomialNB{}, positive(rows), 1e-9)
	}
}

func TestNaiveBayesOfAClassWithoutRows(t *testing.T) {
	rows := positive(mixedRows(100, 2, 35))
	rows.Classes = append(rows.Classes, "never")
	for _, l := range []Learner{&GaussianNB{}, &BernoulliNB{}, &MultinomialNB{}} {
		for i, p := range predict(t, fitAlone(t, l, rows), rows) {
			if i%3 == 2 && p != 0 {
				t.Fatalf("%T: probability %v of a class that has no rows", l, p)
			}
		}
	}
}

func TestNaiveBayesOfWhatCannotBe(t *testing.T) {
	rows := mixedRows(60, 2, 36)
	_, err := (&MultinomialNB{}).Fit(t.Context(), table.Alone{}, rows)
	wantError(t, err, `column "small"`, "counts")
	for _, l := range []Learner{&GaussianNB{Smoothing: -1}, &BernoulliNB{Alpha: -1}} {
		if _, err := l.Fit(t.Context(), table.Alone{}, rows); err == nil || !strings.Contains(err.Error(), "not negative") {
			t.Errorf("%+v: %v", l, err)
		}
	}
	rows.Features.Columns = rows.Features.Columns[3:4]
	_, err = (&GaussianNB{}).Fit(t.Context(), table.Alone{}, rows)
	wantError(t, err, "constant")
}

// A number beyond all that was seen, such as one that stands for a missing value, gives probabilities all the same.
func TestGaussianNBOfHugeNumbers(t *testing.T) {
	rows := Rows{Features: numbersBatch([][]float64{{1}, {2}, {4}, {7}}), Target: []float64{0, 0, 1, 1}, Classes: []string{"a", "b"}}
	for _, x := range []float64{1e160, -1e200, math.MaxFloat64} {
		p, err := fitAlone(t, &GaussianNB{}, rows).Predict(nil, numbersBatch([][]float64{{x}}))
		if err != nil || !(math.Abs(total(p)-1) <= 1e-9) {
			t.Errorf("%g: %v, %v", x, p, err)
		}
	}
}
