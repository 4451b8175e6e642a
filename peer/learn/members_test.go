package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// threeParts are rows at random with two members; a third has none.
func threeParts(rows Rows) []Rows {
	rng := rand.New(rand.NewPCG(3, 3))
	owner := make([]int, rows.count())
	for i := range owner {
		owner[i] = 2 * rng.IntN(2)
	}
	var parts []Rows
	for p := range 3 {
		parts = append(parts, rows.Select(func(row int) bool { return owner[row] == p }))
	}
	return parts
}

// fitParts fits at three members, of which one has no rows; all must get the same bytes.
func fitParts(t *testing.T, learner Learner, rows Rows) Model {
	t.Helper()
	models, bytesOf, parts := make([]Model, 3), make([][]byte, 3), threeParts(rows)
	table.Together(3, func(flock table.Flock, i int) {
		var err error
		if models[i], err = learner.Fit(t.Context(), table.Scope(flock, "fit"), parts[i]); err != nil {
			t.Errorf("member %d: %v", i, err)
			return
		}
		bytesOf[i], _ = json.Marshal(models[i])
	})
	if t.Failed() {
		t.FailNow()
	}
	for i := range bytesOf {
		if !bytes.Equal(bytesOf[i], bytesOf[0]) {
			t.Fatalf("members 0 and %d have other bytes:\n%s\n%s", i, bytesOf[0], bytesOf[i])
		}
	}
	return models[0]
}

// fitAlone fits with all rows, and checks that the model survives its file.
func fitAlone(t *testing.T, learner Learner, rows Rows) Model {
	t.Helper()
	model, err := learner.Fit(t.Context(), table.Alone{}, rows)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := Save(&file, File{Model: model, Classes: rows.Classes}); err != nil {
		t.Fatal(err)
	}
	again, err := Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := predict(t, model, rows), predict(t, again.Model, rows); !slices.Equal(a, b) {
		t.Fatal("a model that was saved and loaded predicts otherwise")
	}
	return model
}

// sameAsAlone fits at three members and at one with all rows, and compares predictions.
func sameAsAlone(t *testing.T, learner Learner, rows Rows, tolerance float64) Model {
	t.Helper()
	alone, three := fitAlone(t, learner, rows), fitParts(t, learner, rows)
	a, b := predict(t, alone, rows), predict(t, three, rows)
	for i := range a {
		if math.Abs(a[i]-b[i]) > tolerance*max(1, math.Abs(a[i])) {
			t.Fatalf("prediction %d is %v alone and %v by three; want them within %v", i, a[i], b[i], tolerance)
		}
	}
	return alone
}

func predict(t *testing.T, model Model, rows Rows) []float64 {
	t.Helper()
	p, err := model.Predict(nil, rows.Features)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) != rows.count()*model.Outputs() {
		t.Fatalf("%d predictions for %d rows of %d outputs", len(p), rows.count(), model.Outputs())
	}
	if rows.Classes != nil {
		for row := range slices.Chunk(p, model.Outputs()) {
			if math.Abs(total(row)-1) > 1e-9 {
				t.Fatalf("probabilities %v do not add up to 1", row)
			}
		}
	}
	return p
}

// mixedRows have numbers of very unlike size, one-hot columns, a constant one, and weights.
func mixedRows(n, classes int, seed uint64) Rows {
	rng := rand.New(rand.NewPCG(seed, seed))
	names := []string{"small", "large", "far", "constant", "rare", "often", "last"}
	b := &table.Batch{Rows: n}
	for _, name := range names {
		b.Columns = append(b.Columns, table.Column{Name: name, Numbers: make([]float64, n)})
	}
	rows := Rows{Features: b, Target: make([]float64, n), Weight: make([]float64, n)}
	for c := range classes {
		rows.Classes = append(rows.Classes, fmt.Sprint("class", c))
	}
	for i := range n {
		x, y, z := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
		rare, often := float64(rng.IntN(20)/19), float64((rng.IntN(10)+8)/9)
		for j, value := range []float64{1e-3 * x, 1e3 * y, 1e6 + z, 7, rare, often, z - y*x} {
			b.Columns[j].Numbers[i] = value
		}
		signal := x - 0.5*y + 0.25*z + 2*rare - often + rng.NormFloat64()
		rows.Target[i], rows.Weight[i] = 3*signal+1, float64(1+rng.IntN(3))
		if classes > 0 {
			rows.Target[i] = math.Floor(sigmoid(signal) * float64(classes))
		}
	}
	return rows
}

// failParts fits rows, of which those of member 0 are at fault, and gives each one's error.
func failParts(t *testing.T, learner Learner, parts []Rows) []error {
	t.Helper()
	errs := make([]error, len(parts))
	table.Together(len(parts), func(flock table.Flock, i int) {
		_, errs[i] = learner.Fit(t.Context(), table.Scope(flock, "fit"), parts[i])
	})
	return errs
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v; want one that says %q", err, part)
		}
	}
}
