package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// ellipsoid has rows whose columns mix independent ones of falling scale, far from 0.
func ellipsoid(n, d int, scale func(int) float64) Rows {
	chance := rand.New(rand.NewPCG(4, uint64(d)))
	mix := make([]float64, d*d)
	for i := range mix {
		mix[i] = chance.NormFloat64()
	}
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, d)
		for s := range d {
			z := scale(s) * chance.NormFloat64()
			for j := range d {
				rows[i][j] += z * mix[s*d+j]
			}
		}
		for j := range d {
			rows[i][j] += 1e5
		}
	}
	return Rows{Features: numbersBatch(rows)}
}

func thirds(rows Rows) (parts []Rows) {
	for i := range 3 {
		parts = append(parts, part(rows, func(row int) bool { return min(row/10, 2) == i }))
	}
	return append(parts, part(rows, func(int) bool { return false }))
}

func TestPCAIsThatOfAllRows(t *testing.T) {
	for _, randomized := range []bool{false, true} {
		t.Run(fmt.Sprint("randomized ", randomized), func(t *testing.T) {
			rows := ellipsoid(300, 20, func(s int) float64 { return math.Pow(0.5, float64(s)) })
			rows.Weight = make([]float64, 300)
			for i := range rows.Weight {
				rows.Weight[i] = float64(i % 4)
			}
			learner := PCA{Components: 4, Randomized: randomized}
			a, b := fitBoth(t, learner, rows, thirds(rows)...)
			alone, together := a.(*PCAModel), b.(*PCAModel)
			sameFloats(t, "mean", together.Mean, alone.Mean, 1e-9)
			sameFloats(t, "components", slices.Concat(together.Components...), slices.Concat(alone.Components...), 1e-8)
			sameFloats(t, "explained", together.Explained, alone.Explained, 1e-9)

			// Each component is of length 1, has no part in the others, and the rows vary along
			// it as the model says.
			coordinates, _ := together.Predict(nil, rows.Features)
			for i, c := range together.Components {
				sum, weight := 0.0, 0.0
				for row, w := range rows.Weight {
					sum += w * coordinates[row*4+i] * coordinates[row*4+i]
					weight += w
				}
				if !close1(sum/weight, together.Variance[i], 1e-6) {
					t.Errorf("component %d: variance %v, but rows have %v along it", i, together.Variance[i], sum/weight)
				}
				for j, other := range together.Components {
					want := map[bool]float64{true: 1}[i == j]
					dot := 0.0
					for k := range c {
						dot += c[k] * other[k]
					}
					if math.Abs(dot-want) > 1e-9 {
						t.Errorf("components %d and %d have the product %v, want %v", i, j, dot, want)
					}
				}
				if largest := slices.MaxFunc(c, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) }); largest < 0 {
					t.Errorf("component %d: its largest entry is %v", i, largest)
				}
			}
			if !slices.IsSortedFunc(together.Explained, func(a, b float64) int { return -cmpFloat(a, b) }) || total(together.Explained) > 1 {
				t.Errorf("explained %v", together.Explained)
			}
		})
	}
}

func cmpFloat(a, b float64) int { return int(math.Copysign(1, a-b)) }

// A random search finds what the covariance has, to 1e-6, and so does one of more columns
// than a covariance is made of.
func TestRandomizedPCAIsTheExactOne(t *testing.T) {
	rows := ellipsoid(120, 60, func(s int) float64 { return math.Pow(0.7, float64(s)) })
	exact, err := PCA{Components: 5}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	sketched, err := PCA{Components: 5, Randomized: true, Seed: 9}.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	a, b := exact.(*PCAModel), sketched.(*PCAModel)
	sameFloats(t, "components", slices.Concat(b.Components...), slices.Concat(a.Components...), 1e-6)
	sameFloats(t, "explained", b.Explained, a.Explained, 1e-6)

	wide := Rows{Features: &table.Batch{Rows: 4}}
	for j := range wideColumns + 1 {
		wide.Features.Columns = append(wide.Features.Columns, table.Column{Name: fmt.Sprint(j), Numbers: []float64{float64(j % 5), 1, float64(j % 3), -1}})
	}
	m, err := PCA{Components: 3}.Fit(t.Context(), table.Alone{}, wide)
	if err != nil {
		t.Fatal(err)
	}
	if e := m.(*PCAModel).Explained; !close1(total(e), 1, 1e-9) {
		t.Errorf("three components explain %v of four rows, want all", e)
	}
}

func TestPCASaysWhatIsWrong(t *testing.T) {
	rows := ellipsoid(5, 3, func(int) float64 { return 1 })
	if _, err := (PCA{Components: 4}).Fit(t.Context(), table.Alone{}, rows); err == nil || !strings.Contains(err.Error(), "from 1 to 3") {
		t.Errorf("%v; want it to say how many there may be", err)
	}
	constant := Rows{Features: numbersBatch([][]float64{{1, 2}, {1, 2}})}
	m, err := PCA{}.Fit(t.Context(), table.Alone{}, constant)
	if err != nil || m.(*PCAModel).Explained[0] != 0 {
		t.Errorf("%+v, %v; constant columns explain nothing", m, err)
	}
}
