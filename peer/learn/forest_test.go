package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/table"
)

func TestTreeIsTheSameWhateverTheSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		equalWhateverTheSplit(t, Tree{MinRows: 3, Depth: 5, Leaves: rapid.IntRange(0, 9).Draw(t, "leaves")})
	})
}

func TestForestIsTheSameWhateverTheSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		equalWhateverTheSplit(t, Forest{
			Trees: rapid.IntRange(1, 10).Draw(t, "trees"), MinRows: 3, Depth: 5, Seed: 7,
			Columns: rapid.SampledFrom([]float64{0, 0.7, 1}).Draw(t, "columns"),
		})
	})
}

// impurity is the squared error of the rows on one side of a split by their mean; of a target of
// classes 0 and 1 it is half of what Gini's impurity makes of it.
func impurity(y []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	for _, v := range y {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// bestImpurity tries all thresholds of all columns, missing values on either side.
func bestImpurity(rows Rows, minRows int) float64 {
	best := impurity(rows.Target)
	for _, column := range rows.Features.Columns {
		for _, threshold := range append(column.Numbers, math.MaxFloat64) {
			for _, missingLeft := range []bool{false, true} {
				var sides [2][]float64
				for i, x := range column.Numbers {
					side := 1
					if missing(x) && missingLeft || !missing(x) && x <= threshold {
						side = 0
					}
					sides[side] = append(sides[side], rows.Target[i])
				}
				if len(sides[0]) >= minRows && len(sides[1]) >= minRows && !missing(threshold) {
					best = min(best, impurity(sides[0])+impurity(sides[1]))
				}
			}
		}
	}
	return best
}

func TestTreeFindsTheBestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := anyTable(t)
		if len(rows.Classes) > 2 {
			rows.Classes = nil
		}
		rows.Weight = nil
		var numbers []table.Column
		for _, c := range rows.Features.Columns {
			if c.Kind == table.Number {
				numbers = append(numbers, c)
			}
		}
		if rows.Features.Columns = numbers; len(numbers) == 0 || rows.Features.Rows > 250 { // more values than bins
			return
		}
		m, err := Tree{Depth: 1, MinRows: 5}.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			return
		}
		outputs, err := m.Predict(nil, rows.Features)
		if err != nil {
			t.Fatal(err)
		}
		got, k := 0.0, m.Outputs()
		for i, y := range rows.Target {
			got += (y - outputs[i*k+k-1]) * (y - outputs[i*k+k-1])
		}
		if want := bestImpurity(rows, 5); math.Abs(got-want) > 1e-5*(1+want) {
			t.Fatalf("the split leaves %v, the best one %v", got, want)
		}
	})
}

// wine is three classes, which only two columns together tell apart.
func wine(n int) Rows {
	rows := late(n)
	rows.Classes = []string{"red", "white", "rosé"}
	for i := range rows.Target {
		rows.Target[i] = 0
		if rows.Features.Columns[0].Numbers[i] >= 12 {
			rows.Target[i] = 1 + float64(rows.Features.Columns[3].Codes[i]%2)
		}
	}
	return rows
}

func TestTreesOfThreeClasses(t *testing.T) {
	rows := wine(900)
	for _, learner := range []Learner{Tree{}, Forest{Trees: 12, Columns: 0.6}, Boost{Trees: 10, Rate: 0.3}} {
		m := fitParts(t, learner, rows)
		s, err := Evaluate(t.Context(), table.Alone{}, m, rows)
		if err != nil || s.Classes.Accuracy < 0.98 {
			t.Errorf("%T: %+v, %v", learner, s.Classes, err)
		}
	}
}

func TestForestLearns(t *testing.T) {
	rows := late(4000)
	train, test := rows.Select(func(i int) bool { return i%2 == 0 }), rows.Select(func(i int) bool { return i%2 == 1 })
	for learner, least := range map[Learner]float64{Tree{}: 0.82, Forest{Trees: 30}: 0.84} {
		s, err := Evaluate(t.Context(), table.Alone{}, fitParts(t, learner, train), test)
		if err != nil || s.Classes.AUC < least {
			t.Errorf("%T: %+v, %v", learner, s.Classes, err)
		}
	}
}

// Large forests are summed in parts: no sum is larger than its bound and one histogram.
func TestForestBoundsItsSums(t *testing.T) {
	flock := &counted{}
	if _, err := (Forest{Trees: 8, Depth: 6, MinRows: 1, Columns: 1}).Fit(t.Context(), table.Scope(flock, "f"), late(3000)); err != nil {
		t.Fatal(err)
	}
	if flock.largest > maxSum+1024 {
		t.Errorf("a sum of %d numbers", flock.largest)
	}
}

// Rows of ten kinds that hardly differ by any one column, some 20 of each: a forest whose leaves want 20
// rows cannot tell them apart as one by default does.
func TestForestTellsFewRowsApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	rows := Rows{Features: &table.Batch{Rows: 400}, Target: make([]float64, 400)}
	for c := range 10 {
		rows.Classes = append(rows.Classes, fmt.Sprint(c))
	}
	for j := range 16 {
		c := table.Column{Name: fmt.Sprint("p", j), Numbers: make([]float64, 400)}
		for i := range c.Numbers {
			rows.Target[i] = float64(i % 10)
			c.Numbers[i] = math.Round(8 + 4*math.Sin(float64((j+1)*(i%10+3))) + 3*rng.NormFloat64())
		}
		rows.Features.Columns = append(rows.Features.Columns, c)
	}
	train, test := rows.Select(func(i int) bool { return i%20 < 10 }), rows.Select(func(i int) bool { return i%20 >= 10 })
	accuracy := func(l Learner) float64 {
		s, err := Evaluate(t.Context(), table.Alone{}, fitParts(t, l, train), test)
		if err != nil {
			t.Fatal(err)
		}
		return s.Classes.Accuracy
	}
	if few, many := accuracy(Forest{Trees: 40}), accuracy(Forest{Trees: 40, MinRows: 20}); few < many+0.03 {
		t.Errorf("accuracy %.3f by default, %.3f with 20 rows a leaf", few, many)
	} else {
		t.Logf("accuracy %.3f by default, %.3f with 20 rows a leaf", few, many)
	}
}

// A column of two or twelve values splits nodes of few rows too.
func TestForestSplitsByFewValues(t *testing.T) {
	for _, values := range []int{2, 12} {
		rows := Rows{Features: &table.Batch{Rows: 15 * values, Columns: []table.Column{{Name: "x"}}}}
		for i := range rows.Features.Rows {
			x := float64(i % values)
			rows.Features.Columns[0].Numbers = append(rows.Features.Columns[0].Numbers, x)
			rows.Target = append(rows.Target, math.Mod(x*x, 7))
		}
		for i, y := range predict(t, fitParts(t, Forest{Trees: 20}, rows), rows) {
			if math.Abs(y-rows.Target[i]) > 0.1 {
				t.Errorf("%d values: %v of %v", values, y, rows.Target[i])
				break
			}
		}
	}
}

// A tree for which no row was drawn has the shares of all rows.
func TestForestOfTreesWithoutRows(t *testing.T) {
	for classes := 2; classes <= 3; classes++ {
		rows := Rows{Features: &table.Batch{Rows: classes, Columns: []table.Column{{Name: "x", Numbers: make([]float64, classes)}}}}
		for c := range classes {
			rows.Classes, rows.Target = append(rows.Classes, fmt.Sprint(c)), append(rows.Target, float64(c))
		}
		m, err := Forest{Trees: 400}.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Predict(nil, rows.Features)
		if last := p[classes-1]; err != nil || math.Abs(total(p[:classes])-1) > 1e-5 || math.Abs(last-1/float64(classes)) > 0.05 {
			t.Errorf("%v", p[:classes])
		}
	}
}
