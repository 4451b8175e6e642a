package flocktest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// usable says what is wrong with what came of a flock with a member at fault: an error, or a model that can
// be saved and predicts.
func usable(s *spoilt, m learn.Model, err error, rows learn.Rows) (wrong error) {
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
	if err := learn.Save(new(bytes.Buffer), learn.File{Model: m}); err != nil {
		return err
	}
	p, err := m.Predict(nil, rows.Features)
	if err == nil && slices.ContainsFunc(p, func(x float64) bool { return x-x != 0 }) {
		return fmt.Errorf("predictions %v", p)
	}
	return err
}

// fitSpoilt recovers what a fit panics with.
func fitSpoilt(t *testing.T, l learn.Learner, s *spoilt, rows learn.Rows) (m learn.Model, err error) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%T, call %d, %q %s: panic: %v", l, s.Call, s.Name, s.How.Name, r)
			err = errors.New("panic")
		}
	}()
	return l.Fit(t.Context(), table.Scope(s, "f"), rows)
}

// Whatever the flock gives, every learner ends with an error or a model that serves.
func TestLearnersOverAFlockWithAMemberAtFault(t *testing.T) {
	numbers, two, three, ratings := rowsOf(90, 0), rowsOf(90, 2), rowsOf(90, 3), ratingsOf(12, 9)
	counts := rowsOf(90, 3)
	for _, c := range counts.Features.Columns {
		for i, x := range c.Numbers {
			c.Numbers[i] = float64(int(x*x) % 7)
		}
	}
	mixed := withCategories(rowsOf(300, 2))
	for _, of := range []struct {
		learner learn.Learner
		rows    learn.Rows
	}{
		{&learn.Linear{}, numbers}, {&learn.Linear{Ridge: 1}, three}, {&learn.Logistic{Iterations: 6}, two}, {&learn.Logistic{Iterations: 4, L1Ratio: 0.5}, three},
		{&learn.LinearSVM{Iterations: 4}, two}, {&learn.GaussianNB{}, three}, {&learn.BernoulliNB{}, two}, {&learn.MultinomialNB{}, counts},
		{learn.KMeans{Clusters: 3, Iterations: 4}, numbers}, {learn.PCA{}, numbers}, {learn.PCA{Components: 2, Randomized: true}, numbers},
		{learn.ALS{Rounds: 2, Factors: 2}, ratings}, {learn.ALS{Rounds: 2, Factors: 2, Implicit: true}, ratings}, {learn.LDA{Topics: 3, Iterations: 2, Floor: 1}, textsOf(30)},
		{&learn.Ensemble{Learner: &learn.Linear{}}, numbers}, {&learn.Ensemble{Learner: &learn.GaussianNB{}, Combine: learn.Stack}, two},
		{&learn.Ensemble{Learner: &learn.Logistic{}, Combine: learn.MeanCoefficients}, two}, {&learn.Ensemble{Learner: learn.Tree{Depth: 2}, Combine: learn.Vote}, two},
		{learn.Boost{Trees: 2, Leaves: 4, MinRows: 3}, mixed}, {learn.Boost{Trees: 2, Leaves: 4}, numbers}, {learn.Boost{Trees: 1, Leaves: 4, MinRows: 2}, three},
		{learn.Tree{Depth: 3, MinRows: 2}, numbers}, {learn.Forest{Trees: 3, Depth: 3}, mixed}, {learn.Forest{Trees: 2, Depth: 3}, three}, {learn.Tree{Depth: 4}, withCategories(rowsOf(300, 3))},
	} {
		t.Run(fmt.Sprintf("%T of %d classes", of.learner, len(of.rows.Classes)), func(t *testing.T) {
			t.Parallel()
			most := 100
			switch of.learner.(type) {
			case learn.Boost, learn.Tree, learn.Forest: // which have many and larger sums
				most = 5
			}
			everyCall(table.Alone{}, most, func(s *spoilt) {
				m, err := fitSpoilt(t, of.learner, s, of.rows)
				if wrong := usable(s, m, err, of.rows); wrong != nil || s.Call < 0 && err != nil {
					t.Errorf("call %d, %q %s: %v, %v", s.Call, s.Name, s.How.Name, wrong, err)
				}
			})
		})
	}
}

// ratingsOf are some users' ratings of items.
func ratingsOf(users, items int) learn.Rows {
	var u, i table.Column
	u.Name, i.Name, u.Kind, i.Kind = "user", "item", table.Category, table.Category
	rows := learn.Rows{Features: &table.Batch{}}
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

// textsOf are documents of a few words.
func textsOf(documents int) learn.Rows {
	c := table.Column{Name: "text", Kind: table.Category}
	for row := range documents {
		text := ""
		for i := range 6 {
			text += fmt.Sprintf("word%d ", (row%3*4+i*i*row%5)%9)
		}
		c.Codes, c.Values = append(c.Codes, int32(row)), append(c.Values, text)
	}
	return learn.Rows{Features: &table.Batch{Rows: documents, Columns: []table.Column{c}}}
}

// Scores of topics and of preferences likewise.
func TestScoresWithoutATargetOverAFlockWithAMemberAtFault(t *testing.T) {
	for _, of := range []struct {
		learner learn.Learner
		rows    learn.Rows
	}{{learn.LDA{Topics: 2, Iterations: 2, Floor: 2}, textsOf(12)}, {learn.ALS{Implicit: true, Factors: 2}, ratingsOf(6, 5)}} {
		m, err := of.learner.Fit(t.Context(), table.Alone{}, of.rows)
		if err != nil {
			t.Fatal(err)
		}
		everyCall(table.Alone{}, 12, func(s *spoilt) {
			scores, err := learn.Evaluate(t.Context(), table.Scope(s, "e"), m, of.rows)
			if _, wrong := json.Marshal(scores); err == nil && wrong != nil || s.Call < 0 && err != nil {
				t.Errorf("%q %s: scores %+v: %v, %v", s.Name, s.How.Name, scores, wrong, err)
			}
			if s.Number && strings.HasPrefix(s.How.Name, "NaN") && !errors.Is(err, table.ErrSum) {
				t.Errorf("%q %s: %v", s.Name, s.How.Name, err)
			}
		})
	}
}

// Scores and folds likewise.
func TestScoresOverAFlockWithAMemberAtFault(t *testing.T) {
	for _, rows := range []learn.Rows{rowsOf(60, 0), rowsOf(60, 2), rowsOf(60, 3)} {
		var learner learn.Learner = &learn.GaussianNB{}
		if rows.Classes == nil {
			learner = &learn.Linear{}
		}
		m, err := learner.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		folds, err := table.ParseFolds("fold:2")
		if err != nil {
			t.Fatal(err)
		}
		everyCall(table.Alone{}, 12, func(s *spoilt) {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%q %s: panic: %v", s.Name, s.How.Name, r)
				}
			}()
			scores, err := learn.Evaluate(t.Context(), table.Scope(s, "e"), m, rows)
			all, errs := learn.CrossValidate(t.Context(), table.Scope(s, "c"), learner, rows, folds)
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
	numbers, two, three, ratings := rowsOf(40, 0), rowsOf(40, 2), rowsOf(40, 3), ratingsOf(4, 3)
	refused, tried := 0, 0
	for _, of := range []struct {
		learner learn.Learner
		rows    learn.Rows
	}{
		{&learn.Linear{Ridge: 1}, numbers}, {&learn.Linear{Ridge: 1}, three}, {&learn.Logistic{Iterations: 6}, three}, {&learn.LinearSVM{Iterations: 4}, two}, {&learn.GaussianNB{}, three},
		{&learn.BernoulliNB{}, two}, {learn.KMeans{Clusters: 3, Iterations: 4}, numbers}, {learn.PCA{}, numbers}, {learn.ALS{Rounds: 2, Factors: 2}, ratings},
		{learn.ALS{Rounds: 2, Factors: 2, Implicit: true}, ratings}, {learn.LDA{Topics: 2, Iterations: 2, Floor: 2}, textsOf(12)},
		{&learn.Ensemble{Learner: &learn.Linear{Ridge: 1}}, numbers}, {&learn.Ensemble{Learner: &learn.GaussianNB{}, Combine: learn.Stack}, two}, {&learn.Ensemble{Learner: learn.Tree{Depth: 2}, Combine: learn.Vote}, two},
		{learn.Boost{Trees: 2, Leaves: 4, MinRows: 3}, withCategories(rowsOf(100, 2))}, {learn.Forest{Trees: 2, Depth: 2}, three}, {learn.Tree{Depth: 3}, withCategories(rowsOf(100, 3))},
	} {
		m, err := of.learner.Fit(t.Context(), table.Alone{}, of.rows)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := learn.Save(&file, learn.File{Model: m, Classes: of.rows.Classes}); err != nil {
			t.Fatal(err)
		}
		header, content, _ := bytes.Cut(file.Bytes(), []byte("\n"))
		all, err := mutated(content)
		if err != nil {
			t.Fatal(err)
		}
		tried += len(all)
		for _, data := range all {
			func() {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%T: panic: %v, of %s", m, r, data)
					}
				}()
				sum := sha256.Sum256(data)
				again := fmt.Sprintf("murmuration model 1 %s %d %x\n%s", strings.Fields(string(header))[3], len(data), sum, data)
				read, err := learn.Load(strings.NewReader(again))
				if err != nil {
					if refused++; !errors.Is(err, learn.ErrModelFile) && !errors.Is(err, learn.ErrModelKind) {
						t.Errorf("%T: %v, of %s", m, err, data)
					}
					return
				}
				if p, err := read.Model.Predict(nil, of.rows.Features); err == nil && len(p) != read.Model.Outputs()*of.rows.Features.Rows {
					t.Errorf("%T: %d predictions, of %s", m, len(p), data)
				}
			}()
		}
	}
	if t.Logf("%d of %d refused", refused, tried); refused < tried/4 {
		t.Errorf("%d of %d refused", refused, tried)
	}
}

// rowsOf are numbers of unlike size, of few and of many values, a constant, and weights.
func rowsOf(n, classes int) learn.Rows {
	rng := rand.New(rand.NewPCG(5, 5))
	b := &table.Batch{Rows: n}
	for _, name := range []string{"small", "far", "constant", "rare", "few"} {
		b.Columns = append(b.Columns, table.Column{Name: name, Numbers: make([]float64, n)})
	}
	rows := learn.Rows{Features: b, Target: make([]float64, n), Weight: make([]float64, n)}
	for c := range classes {
		rows.Classes = append(rows.Classes, fmt.Sprint("class", c))
	}
	for i := range n {
		x, y, few := rng.NormFloat64(), rng.NormFloat64(), float64(rng.IntN(5))
		for j, value := range []float64{1e-3 * x, 1e6 + y, 7, float64(rng.IntN(20) / 19), few} {
			b.Columns[j].Numbers[i] = value
		}
		rows.Target[i], rows.Weight[i] = 3*x-y+few, float64(1+rng.IntN(3))
		if classes > 0 {
			rows.Target[i] = float64(min(max(int(x-y/2+float64(classes)/2), 0), classes-1))
		}
	}
	return rows
}

// withCategories has two columns of these beside, and numbers that are missing.
func withCategories(rows learn.Rows) learn.Rows {
	kinds := table.Column{Name: "kind", Kind: table.Category, Values: []string{"p", "q", "r"}}
	tails := table.Column{Name: "tail", Kind: table.Category}
	for i := range rows.Target {
		kinds.Codes, tails.Codes = append(kinds.Codes, int32(i*7%4)-1), append(tails.Codes, int32(i))
		tails.Values = append(tails.Values, fmt.Sprint("N", i))
		if i%9 == 0 {
			rows.Features.Columns[0].Numbers[i] = math.NaN()
		}
	}
	rows.Features.Columns = append(rows.Features.Columns, kinds, tails)
	rows.Weight = nil
	return rows
}

// A member without rows sees nothing but what others bring.
func TestLearnersWithoutRowsOverAFlockWithAMemberAtFault(t *testing.T) {
	rows := rowsOf(90, 2)
	none := rows.Select(func(int) bool { return false })
	for _, l := range []learn.Learner{learn.KMeans{Clusters: 3, Iterations: 4}, &learn.Logistic{Iterations: 4}, learn.Boost{Trees: 1, Leaves: 4}, &learn.GaussianNB{}, learn.PCA{}} {
		everyCall(table.Alone{}, 100, func(s *spoilt) {
			if m, err := fitSpoilt(t, l, s, none); err == nil && s.Call < 0 {
				t.Errorf("%T: a model %v of no rows", l, m)
			}
		})
		table.Together(2, func(m table.Flock, i int) { // of whom one has all, and neither spoils what the other waits for
			part := rows
			if i == 1 {
				part = none
			}
			s := &spoilt{Flock: m, Call: 3, How: spoil{Number: func(float64) float64 { return 0 }, Blocks: func(all [][]byte) [][]byte { return make([][]byte, len(all)) }}}
			model, err := fitSpoilt(t, l, s, part)
			if wrong := usable(s, model, err, rows); wrong != nil {
				t.Errorf("%T: %v", l, wrong)
			}
		})
	}
}
