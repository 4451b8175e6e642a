package learn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/internal/flocktest"
	"github.com/seed-97356399/murmuration/peer/table"
)

// usable says what is wrong with what came of a flock with a member at fault: an error, or a model that can
// be saved and predicts.
func usable(s *flocktest.Spoilt, m Model, err error, rows Rows) (wrong error) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Errorf("predicting: %v", r)
		}
	}()
	if s.Largest > 1<<20 {
		return fmt.Errorf("a sum of %d numbers", s.Largest)
	}
	notFinite := s.Number && (strings.HasPrefix(s.How.Name, "NaN") || strings.Contains(s.How.Name, "Inf"))
	switch {
	case err != nil && notFinite && (!errors.Is(err, table.ErrSum) || !strings.Contains(err.Error(), s.Name)):
		return fmt.Errorf("%w: want an ErrSum that names %q", err, s.Name)
	case err != nil:
		return nil
	case notFinite:
		return fmt.Errorf("no error of %q", s.Name)
	}
	if err := Save(new(bytes.Buffer), File{Model: m}); err != nil {
		return err
	}
	p, err := m.Predict(nil, rows.Features)
	if err == nil && slices.ContainsFunc(p, missing) {
		return fmt.Errorf("predictions %v", p)
	}
	return err
}

// fitSpoilt recovers what a fit panics with.
func fitSpoilt(t *testing.T, l Learner, s *flocktest.Spoilt, rows Rows) (m Model, err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%T, call %d, %q %s: panic: %v", l, s.Call, s.Name, s.How.Name, r)
			err = errors.New("panic")
		}
	}()
	return l.Fit(t.Context(), s, "f", rows)
}

// Whatever the flock gives, every learner ends with an error or a model that serves.
func TestLearnersOverAFlockWithAMemberAtFault(t *testing.T) {
	numbers, two, three, ratings := mixedRows(90, 0, 5), mixedRows(90, 2, 5), mixedRows(90, 3, 5), ratingsOf(12, 9)
	counts := mixedRows(90, 3, 5)
	for _, c := range counts.Features.Columns {
		for i, x := range c.Numbers {
			c.Numbers[i] = float64(int(x*x) % 7)
		}
	}
	mixed := late(300)
	for _, of := range []struct {
		learner Learner
		rows    Rows
	}{
		{&Linear{}, numbers}, {&Linear{Ridge: 1}, three}, {&Logistic{Iterations: 6}, two}, {&Logistic{Iterations: 4, L1Ratio: 0.5}, three},
		{&LinearSVM{Iterations: 4}, two}, {&GaussianNB{}, three}, {&BernoulliNB{}, two}, {&MultinomialNB{}, counts},
		{KMeans{Clusters: 3, Iterations: 4}, numbers}, {PCA{}, numbers}, {PCA{Components: 2, Randomized: true}, numbers},
		{ALS{Rounds: 2, Factors: 2}, ratings}, {&Ensemble{Learner: &Linear{}}, numbers}, {&Ensemble{Learner: &GaussianNB{}, Combine: Stack}, two},
		{&Ensemble{Learner: &Logistic{}, Combine: MeanCoefficients}, two}, {&Ensemble{Learner: Tree{Depth: 2}, Combine: Vote}, two},
		{Boost{Trees: 2, Leaves: 4, MinRows: 3}, mixed}, {Boost{Trees: 2, Leaves: 4}, numbers}, {Boost{Trees: 1, Leaves: 4, MinRows: 2}, three},
		{Tree{Depth: 3, MinRows: 2}, numbers}, {Forest{Trees: 3, Depth: 3}, mixed}, {Forest{Trees: 2, Depth: 3}, three}, {Tree{Depth: 4}, wine(300)},
	} {
		t.Run(fmt.Sprintf("%T of %d classes", of.learner, len(of.rows.Classes)), func(t *testing.T) {
			t.Parallel()
			flocktest.Each(table.Alone{}, 10, func(s *flocktest.Spoilt) {
				m, err := fitSpoilt(t, of.learner, s, of.rows)
				if wrong := usable(s, m, err, of.rows); wrong != nil || s.Call < 0 && err != nil {
					t.Errorf("call %d, %q %s: %v, %v", s.Call, s.Name, s.How.Name, wrong, err)
				}
			})
		})
	}
}

// ratingsOf are some users' ratings of items.
func ratingsOf(users, items int) Rows {
	var u, i table.Column
	u.Name, i.Name, u.Kind, i.Kind = "user", "item", table.Category, table.Category
	rows := Rows{Features: &table.Batch{}}
	for a := range users {
		u.Values = append(u.Values, fmt.Sprint("u", a))
		for b := range items {
			if a == 0 {
				i.Values = append(i.Values, fmt.Sprint("i", b))
			}
			if (a+b)%3 > 0 {
				u.Codes, i.Codes = append(u.Codes, int32(a)), append(i.Codes, int32(b))
				rows.Target = append(rows.Target, float64(a%4+b%3))
				rows.Features.Rows++
			}
		}
	}
	rows.Features.Columns = []table.Column{u, i}
	return rows
}

// Scores and folds likewise.
func TestScoresOverAFlockWithAMemberAtFault(t *testing.T) {
	for _, rows := range []Rows{mixedRows(60, 0, 5), mixedRows(60, 2, 5), mixedRows(60, 3, 5)} {
		var learner Learner = &GaussianNB{}
		if rows.Classes == nil {
			learner = &Linear{}
		}
		m := fitAlone(t, learner, rows)
		folds, err := table.ParseFolds("fold:2")
		if err != nil {
			t.Fatal(err)
		}
		flocktest.Each(table.Alone{}, 20, func(s *flocktest.Spoilt) {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%q %s: panic: %v", s.Name, s.How.Name, r)
				}
			}()
			scores, err := Evaluate(t.Context(), s, "e", m, rows)
			all, errs := CrossValidate(t.Context(), s, "c", learner, rows, folds)
			if _, wrong := json.Marshal([]any{scores, all}); wrong != nil || s.Call < 0 && errors.Join(err, errs) != nil || s.Largest > 1<<20 {
				t.Errorf("%q %s: scores %+v: %v, %v", s.Name, s.How.Name, scores, wrong, err)
			}
			if s.Number && strings.HasPrefix(s.How.Name, "NaN") && !errors.Is(errors.Join(err, errs), table.ErrSum) {
				t.Errorf("%q %s: %v", s.Name, s.How.Name, errors.Join(err, errs))
			}
		})
	}
}

// A model file with a good checksum may hold any numbers: it is refused, or predicts something.
func TestMutatedModels(t *testing.T) {
	numbers, two, three, ratings := mixedRows(40, 0, 5), mixedRows(40, 2, 5), mixedRows(40, 3, 5), ratingsOf(4, 3)
	for _, rows := range []*Rows{&numbers, &two, &three} {
		rows.Features.Columns = rows.Features.Columns[4:]
	}
	for _, of := range []struct {
		learner Learner
		rows    Rows
	}{
		{&Linear{Ridge: 1}, numbers}, {&Linear{Ridge: 1}, three}, {&Logistic{Iterations: 6}, three}, {&LinearSVM{Iterations: 4}, two}, {&GaussianNB{}, three},
		{&BernoulliNB{}, two}, {KMeans{Clusters: 3, Iterations: 4}, numbers}, {PCA{}, numbers}, {ALS{Rounds: 2, Factors: 2}, ratings},
		{&Ensemble{Learner: &Linear{Ridge: 1}}, numbers}, {&Ensemble{Learner: &GaussianNB{}, Combine: Stack}, two}, {&Ensemble{Learner: Tree{Depth: 2}, Combine: Vote}, two},
		{Boost{Trees: 2, Leaves: 4, MinRows: 3}, late(100)}, {Forest{Trees: 2, Depth: 2}, three}, {Tree{Depth: 3}, wine(100)},
	} {
		m, err := of.learner.Fit(t.Context(), table.Alone{}, "f", of.rows)
		if err != nil {
			t.Fatal(err)
		}
		typed, err := encodeModel(m)
		if err != nil {
			t.Fatal(err)
		}
		all, err := flocktest.Mutated(typed.Model)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range all {
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%T: panic: %v, of %s", m, r, data)
					}
				}()
				read, err := typedModel{typed.Kind, data}.decode()
				if err != nil {
					return
				}
				if p, err := read.Predict(nil, of.rows.Features); err == nil && len(p) != read.Outputs()*of.rows.count() {
					t.Errorf("%T: %d predictions, of %s", m, len(p), data)
				}
			}()
		}
	}
}
