package learn

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/peer/table"
)

// areaOfPairs is the area by its definition: over all pairs of a row of the class and another.
func areaOfPairs(scores, truth []float64) float64 {
	sum, pairs := 0.0, 0.0
	for i := range scores {
		for j := range scores {
			if truth[i] == 1 && truth[j] == 0 {
				pairs++
				if scores[i] > scores[j] {
					sum++
				} else if scores[i] == scores[j] {
					sum += 0.5
				}
			}
		}
	}
	return sum / pairs
}

func TestAreaIsWithinItsErrorOfAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func(class float64) float64{
		"spread":    func(c float64) float64 { return sigmoid(rng.NormFloat64() + c) },
		"narrow":    func(c float64) float64 { return 0.2 + 1e-3*rng.Float64()*(1+c) },
		"saturated": func(c float64) float64 { return sigmoid(200 * (rng.NormFloat64() + c)) },
		"few":       func(c float64) float64 { return math.Floor(10*rng.Float64()*(1+c)/2) / 10 },
		"equal":     func(float64) float64 { return 0.5 },
		"certain":   func(c float64) float64 { return c },
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			rows := Rows{Classes: []string{"no", "yes"}}
			var scores, probabilities []float64
			for range 3000 {
				class := float64(rng.IntN(4) / 3)
				score := shape(class)
				rows.Target = append(rows.Target, class)
				scores = append(scores, score)
				probabilities = append(probabilities, 1-score, score)
			}
			s, err := evaluateClasses(t.Context(), table.Alone{}, probabilities, rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := areaOfPairs(scores, rows.Target)
			if off := math.Abs(s.AUC - want); off > s.AUCError+1e-12 || s.AUCError > 1e-4 {
				t.Errorf("AUC %v ± %v, of all pairs %v (off by %v); want an error below 1e-4", s.AUC, s.AUCError, want, off)
			}
		})
	}
}

func TestScoresOfTwoClasses(t *testing.T) {
	// True 0: predicted 0, 0, 1. True 1: predicted 1, 0.
	rows := Rows{Classes: []string{"no", "yes"}, Target: []float64{0, 0, 0, 1, 1}}
	p := []float64{.9, .1, .8, .2, .3, .7, .2, .8, .6, .4}
	s, err := evaluateClasses(t.Context(), table.Alone{}, p, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	loss := -(math.Log(.9) + math.Log(.8) + math.Log(.3) + math.Log(.8) + math.Log(.4)) / 5
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"rows", s.Rows, 5}, {"accuracy", s.Accuracy, 3. / 5}, {"ppv", s.PPV, 1. / 2}, {"recall", s.Recall, 1. / 2},
		{"f1", s.F1, 1. / 2}, {"log loss", s.LogLoss, loss}, {"auc", s.AUC, 5. / 6}, {"auc error", s.AUCError, 0},
		{"confusion[0][1]", s.Confusion[0][1], 1}, {"confusion[1][0]", s.Confusion[1][0], 1}, {"confusion[0][0]", s.Confusion[0][0], 2},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	// A weight of 2 counts as the row twice.
	rows.Weight = []float64{1, 1, 2, 1, 1}
	if s, err = evaluateClasses(t.Context(), table.Alone{}, p, rows, nil); err != nil || s.Rows != 6 || s.Confusion[0][1] != 2 || s.PPV != 1./3 {
		t.Errorf("with a weight of 2 for the false alarm: %+v, %v", s, err)
	}
}

func TestScoresOfThreeClassesAreMeansOfEach(t *testing.T) {
	rows := Rows{Classes: []string{"a", "b", "c"}, Target: []float64{0, 1, 2, 2}}
	p := []float64{.8, .1, .1, .5, .4, .1, .1, .1, .8, .1, .3, .6}
	s, err := evaluateClasses(t.Context(), table.Alone{}, p, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	ppv, recall := (1./2+0+1)/3, (1.+0+1)/3
	if s.Accuracy != 3./4 || math.Abs(s.PPV-ppv) > 1e-12 || math.Abs(s.Recall-recall) > 1e-12 || s.AUC != 1 {
		t.Errorf("%+v, want ppv %v, recall %v, auc 1", s, ppv, recall)
	}
}

func TestScoresOfNumbers(t *testing.T) {
	rows := Rows{Target: []float64{1, 2, 3, 6}}
	s, err := evaluateNumbers(t.Context(), table.Alone{}, []float64{1, 3, 3, 4}, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows.Weight = []float64{1, 1, 1, 3}
	if w, err := evaluateNumbers(t.Context(), table.Alone{}, []float64{1, 3, 3, 4}, rows, nil); err != nil || w.Rows != 6 || w.MAE != 7./6 || w.RMSE != math.Sqrt(13./6) {
		t.Errorf("with weights: %+v, %v", w, err)
	}
	if s.RMSE != math.Sqrt(5./4) || s.MAE != 3./4 || math.Abs(s.R2-(1-5./14)) > 1e-12 {
		t.Errorf("%+v", s)
	}
}

func TestScoresThatCannotBe(t *testing.T) {
	two := []string{"no", "yes"}
	for name, c := range map[string]struct {
		p    []float64
		rows Rows
		want error
	}{
		"no rows":        {nil, Rows{Classes: two}, ErrNoRows},
		"NaN":            {[]float64{math.NaN(), 1}, Rows{Classes: two, Target: []float64{1}}, nil},
		"too few":        {[]float64{1}, Rows{Classes: two, Target: []float64{1}}, nil},
		"no class 2":     {[]float64{0, 1}, Rows{Classes: two, Target: []float64{2}}, nil},
		"negative":       {[]float64{0, 1}, Rows{Classes: two, Target: []float64{1}, Weight: []float64{-1}}, nil},
		"no probability": {[]float64{-1, 2}, Rows{Classes: two, Target: []float64{1}}, nil},
	} {
		_, err := evaluateClasses(t.Context(), table.Alone{}, c.p, c.rows, nil)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := evaluateClasses(t.Context(), table.Alone{}, []float64{0, 1}, Rows{Classes: two, Target: []float64{0}}, nil)
	if want := 52 * math.Ln2; err != nil || s.LogLoss != want {
		t.Errorf("a row that was held impossible has a loss of %v, want %v (%v)", s.LogLoss, want, err)
	}
	s, err = evaluateClasses(t.Context(), table.Alone{}, []float64{0, 1}, Rows{Classes: two, Target: []float64{1}}, nil)
	if err != nil || s.AUC != 0.5 || s.AUCError != 0.5 {
		t.Errorf("one class only: %+v, %v; want an area of 0.5 ± 0.5", s, err)
	}
}
