package learn

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

// apart fits a model at each of threeParts that has rows.
func apart(t *testing.T, learner Learner, rows Rows) (models []Model, weights []float64) {
	t.Helper()
	for _, part := range threeParts(rows) {
		if part.count() > 0 {
			models = append(models, fitAlone(t, learner, part))
			weights = append(weights, total(part.Weight))
		}
	}
	return models, weights
}

func TestAverageIsTheMeanOfModelsApart(t *testing.T) {
	for _, classes := range []int{0, 2, 3} {
		var learner Learner = &Linear{Ridge: 1}
		rows := mixedRows(300, classes, 41)
		models, weights := apart(t, learner, rows)
		got := predict(t, fitParts(t, &Ensemble{Learner: learner}, rows), rows)
		a, b := predict(t, models[0], rows), predict(t, models[1], rows)
		for i := range got {
			if want := (weights[0]*a[i] + weights[1]*b[i]) / total(weights); math.Abs(got[i]-want) > 1e-9*max(1, math.Abs(want)) {
				t.Fatalf("%d classes: prediction %d is %v, want %v", classes, i, got[i], want)
			}
		}
	}
}

func TestVotesAreShares(t *testing.T) {
	rows := mixedRows(300, 3, 42)
	models, _ := apart(t, &GaussianNB{}, rows)
	got := predict(t, fitParts(t, &Ensemble{Learner: &GaussianNB{}, Combine: Vote}, rows), rows)
	a, b := predict(t, models[0], rows), predict(t, models[1], rows)
	for i := range rows.count() {
		want := make([]float64, 3)
		want[floats.MaxIdx(a[3*i:3*i+3])] += 0.5
		want[floats.MaxIdx(b[3*i:3*i+3])] += 0.5
		if !slices.Equal(got[3*i:3*i+3], want) {
			t.Fatalf("row %d: %v, want %v", i, got[3*i:3*i+3], want)
		}
	}
	_, err := (&Ensemble{Learner: &Linear{}, Combine: Vote}).Fit(t.Context(), table.Alone{}, mixedRows(50, 0, 42))
	wantError(t, err, "votes are for classes")
}

// sensorRows have two columns, of which some members see one only: the other is 0.
func sensorRows(n, classes int, first, second float64, seed uint64) Rows {
	rng := rand.New(rand.NewPCG(seed, 43))
	b := &table.Batch{Rows: n, Columns: []table.Column{{Name: "first"}, {Name: "second"}}}
	rows := Rows{Features: b}
	for i := range classes {
		rows.Classes = append(rows.Classes, string(rune('a'+i)))
	}
	for range n {
		x, y := first*rng.NormFloat64(), second*rng.NormFloat64()
		b.Columns[0].Numbers, b.Columns[1].Numbers = append(b.Columns[0].Numbers, x), append(b.Columns[1].Numbers, y)
		target := x + y + 0.1*rng.NormFloat64()
		if classes > 0 {
			target = math.Floor(sigmoid(3*target) * float64(classes))
		}
		rows.Target = append(rows.Target, target)
	}
	return rows
}

// Two members have learned half of the truth each: the average is half of it, and the stacker
// finds that it takes both.
func TestStackTakesFromEachWhatItKnows(t *testing.T) {
	for _, classes := range []int{0, 2, 3} {
		var learner Learner = &Linear{Ridge: 1}
		parts := []Rows{sensorRows(300, classes, 1, 0, 1), sensorRows(300, classes, 0, 1, 2), sensorRows(0, classes, 0, 0, 3)}
		scores := map[Combination]float64{}
		for _, combine := range []Combination{Average, Stack} {
			models := make([]Model, 3)
			table.Together(3, func(flock table.Flock, i int) {
				var err error
				if models[i], err = (&Ensemble{Learner: learner, Combine: combine}).Fit(t.Context(), table.Scope(flock, "f"), parts[i]); err != nil {
					t.Error(err)
				}
			})
			if t.Failed() {
				t.FailNow()
			}
			data, _ := json.Marshal(models[0])
			if other, _ := json.Marshal(models[2]); string(other) != string(data) {
				t.Fatalf("members have unlike ensembles:\n%s\n%s", data, other)
			}
			s, err := Evaluate(t.Context(), table.Alone{}, models[0], sensorRows(300, classes, 1, 1, 4))
			if err != nil {
				t.Fatal(err)
			}
			if classes == 0 {
				scores[combine] = -s.Numbers.RMSE
			} else {
				scores[combine] = -s.Classes.LogLoss
			}
		}
		if !(scores[Stack] > scores[Average]) {
			t.Errorf("%d classes: %v; want the stacker to be better", classes, scores)
		}
	}
}

func TestMeanCoefficientsAreMeans(t *testing.T) {
	for _, classes := range []int{0, 2, 3} {
		var learner Learner = &Linear{Ridge: 1}
		if classes > 0 {
			learner = &Logistic{}
		}
		rows := mixedRows(300, classes, 44)
		models, weights := apart(t, learner, rows)
		m := fitParts(t, &Ensemble{Learner: learner, Combine: MeanCoefficients}, rows).(linearModel).linear()
		a, b := models[0].(linearModel).linear(), models[1].(linearModel).linear()
		for o := range m.Intercept {
			for j := range m.Columns {
				want := (weights[0]*a.Weights[o][j] + weights[1]*b.Weights[o][j]) / total(weights)
				if got := m.Weights[o][j]; math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
					t.Errorf("%d classes: the weight of %q is %v, want %v", classes, m.Columns[j], got, want)
				}
			}
		}
	}
	_, err := (&Ensemble{Learner: &GaussianNB{}, Combine: MeanCoefficients}).Fit(t.Context(), table.Alone{}, mixedRows(50, 2, 44))
	wantError(t, err, "no coefficients")
}

func TestEnsemblesSurviveTheirFile(t *testing.T) {
	for _, combine := range []Combination{"", Vote, Stack, MeanCoefficients} {
		fitAlone(t, &Ensemble{Learner: &Logistic{}, Combine: combine}, mixedRows(200, 2, 45))
	}
	bad := &EnsembleModel{Combine: Stack, Models: []Model{smallFile().Model}, Weights: []float64{1}, outputs: 2}
	encoded, err := encodeModel(bad, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encoded.decode(nil); !errors.Is(err, ErrModelFile) {
		t.Errorf("a stack without a stacker: %v", err)
	}
}

func TestEnsembleOfMembersThatCannotFit(t *testing.T) {
	rows := mixedRows(200, 2, 46)
	parts := threeParts(rows)
	parts[2] = parts[2].Select(func(row int) bool { return parts[2].Target[row] == 1 })
	var models [3]Model
	table.Together(3, func(flock table.Flock, i int) {
		models[i], _ = (&Ensemble{Learner: &Logistic{}}).Fit(t.Context(), table.Scope(flock, "f"), parts[i])
	})
	if m, ok := models[1].(*EnsembleModel); !ok || len(m.Models) != 1 {
		t.Errorf("%v; want the one model of the member with both classes", models[1])
	}
	for _, err := range failParts(t, &Ensemble{Learner: &Logistic{}}, []Rows{parts[2], parts[1]}) {
		wantError(t, err, "no member could fit", "one class")
		if !errors.Is(err, ErrOneClass) {
			t.Errorf("%v; want ErrOneClass of all, since the other has no rows", err)
		}
	}
	for _, err := range failParts(t, &Ensemble{Learner: &Logistic{}}, []Rows{parts[1], parts[1]}) {
		if !errors.Is(err, ErrNoRows) {
			t.Errorf("%v; want ErrNoRows of all", err)
		}
	}
	// What a member says is not searched for the texts of errors.
	for brings, want := range map[string]error{
		`{"error":"column \"learn: no member has rows; check the target, the split and the file\" is empty","model":null}`: nil,
		`{"error":"nothing to fit","is":"no rows","model":null}`:                                                           ErrNoRows,
		`{"error":"all alike","is":"one class","model":null}`:                                                              ErrOneClass,
	} {
		_, err := (&Ensemble{Learner: &Logistic{}}).Fit(t.Context(), rogue{brings: brings}, parts[1])
		if got := errors.Is(err, ErrNoRows) || errors.Is(err, ErrOneClass); got != (want != nil) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", brings, err, want)
		}
	}
	for _, e := range []*Ensemble{{}, {Learner: &Logistic{}, Combine: "guess"}} {
		if _, err := e.Fit(t.Context(), table.Alone{}, rows); err == nil {
			t.Errorf("%+v is taken", e)
		}
	}
}

// rogue is a flock with a member more, which brings a model of its own making.
type rogue struct {
	table.Alone
	brings string
}

func (r rogue) Gather(ctx context.Context, name string, data []byte) ([][]byte, error) {
	return [][]byte{data, []byte(r.brings)}, ctx.Err()
}

func TestEnsembleTrustsNoModel(t *testing.T) {
	rows := mixedRows(200, 2, 47)
	for want, brings := range map[string]string{
		"no column":     `{"rows":1,"kind":"logistic","model":{"columns":["other"],"intercept":[1],"weights":[[1]]}}`,
		"1 outputs":     `{"rows":1,"kind":"linear","model":{"columns":[],"intercept":[1],"weights":[[]]}}`,
		"unknown kind":  `{"rows":1,"kind":"oracle","model":{}}`,
		"2 weights":     `{"rows":1,"kind":"logistic","model":{"columns":["small"],"intercept":[1],"weights":[[1,2]]}}`,
		"of -1 rows":    `{"rows":-1,"kind":"logistic","model":{"columns":["small"],"intercept":[1],"weights":[[1]]}}`,
		"invalid chara": `no JSON`,
	} {
		_, err := (&Ensemble{Learner: &Logistic{}}).Fit(t.Context(), table.Scope(rogue{brings: brings}, "f"), rows)
		wantError(t, err, want, "member 2 of 2")
	}
}

// TestCheckKnowsWhoHasCoefficients: a learner is refused by its name, before it has a model, if and only if its model has no coefficients.
func TestCheckKnowsWhoHasCoefficients(t *testing.T) {
	tried := 0
	for name, make := range Learners() {
		rows := mixedRows(60, 2, 47)
		m, err := make().Fit(t.Context(), table.Alone{}, rows)
		if err != nil { // it wants a number, or other columns
			rows.Classes = nil
			if m, err = make().Fit(t.Context(), table.Alone{}, rows); err != nil {
				continue
			}
		}
		tried++
		_, has := m.(linearModel)
		if err := (Ensemble{Learner: make(), Combine: MeanCoefficients}).Check(rows.Classes); (err == nil) != has {
			t.Errorf("%s, whose model has coefficients: %t: %v", name, has, err)
		}
	}
	if tried < 6 {
		t.Errorf("only %d learners were tried", tried)
	}
}
