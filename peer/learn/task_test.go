package learn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// sales are n rows: of shops, each with a number, a city and a day, and what they have sold.
func sales(n int) *table.Batch {
	b := &table.Batch{Rows: n, Columns: []table.Column{
		{Name: "size"}, {Name: "city", Kind: table.Category, Values: []string{"Oslo", "Rome"}}, {Name: "shop", Kind: table.Category},
		{Name: "day", Kind: table.Category}, {Name: "sold"},
	}}
	for i := range n {
		size, city := float64(i*13%50), int32(i/3%2)
		b.Columns[0].Numbers = append(b.Columns[0].Numbers, size)
		b.Columns[1].Codes = append(b.Columns[1].Codes, city)
		for c, text := range map[int]string{2: fmt.Sprint("shop ", i), 3: fmt.Sprintf("2024-05-%02d", 1+i%31)} {
			b.Columns[c].Codes, b.Columns[c].Values = append(b.Columns[c].Codes, int32(i)), append(b.Columns[c].Values, text)
		}
		b.Columns[4].Numbers = append(b.Columns[4].Numbers, 3*size+20*float64(city)+float64(i%31))
	}
	return b
}

// Each learner has its rows as it needs them, whoever holds which, and predicts from its file.
func TestTaskOfEachLearner(t *testing.T) {
	all := sales(400)
	for _, c := range []struct {
		learner learn.Learner
		target  string
		least   float64 // R² or AUC
		columns string
	}{
		{learn.Linear{Ridge: 1e-3}, "sold", 0.99, "size city=Oslo city=Rome city=other day day.month day.weekday"},
		{learn.Boost{Trees: 20}, "sold", 0.9, "size city day day.month day.weekday"},
		{&learn.Forest{Trees: 5}, "sold", 0.5, "size city day day.month day.weekday"},
		{learn.Logistic{}, "sold>90", 0.99, "size city=Oslo city=Rome city=other day day.month day.weekday"},
		{&learn.MultinomialNB{}, "sold>90", 0.6, "size city=Oslo city=Rome city=other day day.month day.weekday"},
		{learn.KMeans{Clusters: 2}, "", 0, "size city=Oslo city=Rome city=other day day.month day.weekday sold"},
	} {
		task := learn.Task{Plan: prepare.Plan{Target: c.target, Split: "hash:7/10"}, Learner: c.learner}
		parts := []*table.Batch{all.Keep(func(row int) bool { return row%3 == 0 }), all.Keep(func(row int) bool { return row%3 > 0 })}
		table.Together(3, func(flock table.Flock, i int) {
			var mine table.Table
			if i < 2 {
				mine = table.Held(parts[i])
			}
			fitted, err := task.Fit(t.Context(), flock, mine)
			if err != nil {
				t.Errorf("%T: member %d: %v", c.learner, i, err)
				return
			}
			names := fitted.Train.Features.Names()
			slices.Sort(names)
			if want := slices.Sorted(slices.Values(strings.Fields(c.columns))); !slices.Equal(names, want) {
				t.Errorf("%T: columns %q, want %q", c.learner, names, want)
			}
			reached := 0.0
			if s := fitted.Scores; s.Numbers != nil {
				reached = s.Numbers.R2
			} else if s.Classes != nil {
				reached = s.Classes.AUC
			}
			if reached < c.least || (c.target == "") != (fitted.Test.Features == nil) {
				t.Errorf("%T: member %d: scores %+v", c.learner, i, fitted.Scores)
			}
			var file bytes.Buffer
			if err := learn.Save(&file, fitted.File); err != nil {
				t.Error(err)
			}
			read, err := learn.Load(&file)
			if err != nil || read.Target != c.target || len(read.Features) != 3+len(names)-len(strings.Fields(c.columns))+map[bool]int{true: 1}[c.target == ""] {
				t.Errorf("%T: %v, %+v", c.learner, err, read.Features)
			}
			a, errA := fitted.Predict(nil, all)
			b, errB := read.Predict(nil, all)
			if errA != nil || errB != nil || !slices.Equal(a, b) || len(a) != 400*read.Model.Outputs() {
				t.Errorf("%T: predictions of the file differ: %v, %v", c.learner, errA, errB)
			}
		})
	}
}

// Stages that are given are all that is done.
func TestTaskWithStages(t *testing.T) {
	task := learn.Task{Plan: prepare.Plan{Target: "sold", Stages: []table.Stage{&prepare.Buckets{Columns: []string{"shop"}, Count: 4}}}, Learner: learn.Boost{Trees: 2}}
	fitted, err := task.Fit(t.Context(), table.Alone{}, table.Held(sales(100)))
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(fitted.Train.Features.Names(), " "); names != "size city shop#0 shop#1 shop#2 shop#3 day" || fitted.Scores.Numbers.Rows != 100 {
		t.Errorf("%s, %+v", names, fitted.Scores.Numbers)
	}
	ratings := learn.Task{Plan: prepare.Plan{Target: "sold", Only: []string{"shop", "day"}}, Learner: learn.ALS{User: "shop", Item: "day"}}
	if fitted, err = ratings.Fit(t.Context(), table.Alone{}, table.Held(sales(100))); err != nil || len(fitted.Features) != 2 || len(fitted.Pipeline.Stages) != 0 {
		t.Errorf("%+v, %v", fitted, err)
	}
}

// Two tasks over one flock have scopes of their own, and one that no learner can do ends at all.
func TestTasksOverOneFlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table.Together(2, func(flock table.Flock, i int) {
			task := learn.Task{Plan: prepare.Plan{Target: "sold"}, Learner: learn.Linear{Ridge: 1}}
			for _, name := range []string{"monday", "tuesday"} {
				if _, err := task.Fit(t.Context(), table.Scope(flock, name), table.Held(sales(50))); err != nil {
					t.Error(err)
				}
			}
			task.Learner = learn.Logistic{}
			if _, err := task.Fit(t.Context(), table.Scope(flock, "classes"), table.Held(sales(50))); err == nil || !strings.Contains(err.Error(), "wants classes") {
				t.Error(err)
			}
			task.Split = "half"
			if _, err := task.Fit(t.Context(), table.Scope(flock, "split"), table.Held(sales(50))); err == nil {
				t.Error("no such split")
			}
		})
	})
}

// median is a learner of a service, and its model.
type median struct{ Of string }

func (m *median) Fit(ctx context.Context, flock table.Flock, rows learn.Rows) (learn.Model, error) {
	return m, nil
}
func (m *median) Outputs() int { return 1 }
func (m *median) Predict(dst []float64, b *table.Batch) ([]float64, error) {
	return append(dst, b.Find(m.Of).Numbers...), nil
}

// half is a stage of a service.
type half struct{ Column string }

func (*half) Fit(context.Context, table.Flock, table.Source) error { return nil }
func (h *half) Transform(b *table.Batch) (*table.Batch, error) {
	out := &table.Batch{Rows: b.Rows, Keys: b.Keys, First: b.First}
	for _, c := range b.Columns {
		if c.Name == h.Column {
			c.Numbers = slices.Clone(c.Numbers)
			for i := range c.Numbers {
				c.Numbers[i] /= 2
			}
		}
		out.Columns = append(out.Columns, c)
	}
	return out, nil
}

// Stages, learners and models of a service go into files and ensembles, where their kinds are given; a service
// that does not know them is told which it lacks.
func TestKindsOfOnesOwn(t *testing.T) {
	kinds := learn.Kinds{
		Models: learn.Models().With("median", func() learn.Model { return new(median) }),
		Stages: prepare.Kinds().With("half", func() table.Stage { return new(half) }),
	}
	for name, learner := range map[string]learn.Learner{"plain": &median{Of: "size"}, "ensemble": learn.Ensemble{Learner: &median{Of: "size"}, Kinds: kinds.Models}} {
		task := learn.Task{Plan: prepare.Plan{Target: "sold", Stages: []table.Stage{&half{Column: "size"}}, Kinds: kinds.Stages}, Learner: learner}
		fitted, err := task.Fit(t.Context(), table.Alone{}, table.Held(sales(20)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var file bytes.Buffer
		if err := kinds.Save(&file, fitted.File); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := file.String()
		read, err := kinds.Load(&file)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p, err := read.Predict(nil, sales(2)); err != nil || !slices.Equal(p, []float64{0, 6.5}) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
		if _, err := learn.Load(strings.NewReader(text)); !errors.Is(err, learn.ErrModelFile) || !strings.Contains(err.Error(), `"half"`) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (learn.Kinds{Stages: kinds.Stages}).Load(strings.NewReader(text)); !errors.Is(err, learn.ErrModelKind) || !strings.Contains(err.Error(), `"median"`) {
			t.Errorf("%s: %v", name, err)
		}
		if err := learn.Save(new(bytes.Buffer), fitted.File); !errors.Is(err, learn.ErrModelKind) && name == "plain" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A task is kept as JSON, with its learner and stages, of a service's own too, and is what it was; by hand, what is
// not given is as it is by default.
func TestTasksAreKept(t *testing.T) {
	kinds := learn.Kinds{
		Learners: learn.Learners().With("median", func() learn.Learner { return new(median) }),
		Stages:   prepare.Kinds().With("half", func() table.Stage { return new(half) }),
	}
	plan := prepare.Plan{Target: "sold>90", Split: "row:7/10", Drop: []string{"shop"}, Classes: true, Stages: []table.Stage{&half{Column: "size"}, &prepare.OneHot{Floor: 3}}}
	for _, name := range kinds.Learners.Names() {
		task := learn.Task{Plan: plan, Usual: prepare.Usual{Floor: 5}, Learner: kinds.Learners[name]()}
		text, err := kinds.MarshalTask(task)
		if err != nil {
			t.Fatal(err)
		}
		read, err := kinds.UnmarshalTask(text)
		again, _ := kinds.MarshalTask(read)
		if err != nil || !bytes.Equal(text, again) || fmt.Sprintf("%T", read.Learner) != fmt.Sprintf("%T", task.Learner) || len(read.Stages) != 2 || read.Target != plan.Target || read.Usual.Floor != 5 {
			t.Errorf("%s: %v, %s\nwas %s", name, err, again, text)
		}
		if _, err := (learn.Kinds{}).UnmarshalTask(text); err == nil || !strings.Contains(err.Error(), `"half"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	read, err := learn.Kinds{}.UnmarshalTask([]byte(`{"target": "sold>90", "learner": {"kind": "boost", "settings": {"trees": 3}}}`))
	if err != nil || read.Learner.(*learn.Boost).Trees != 3 || read.Stages != nil {
		t.Fatalf("%v, %+v", err, read)
	}
	if fitted, err := read.Fit(t.Context(), table.Alone{}, table.Held(sales(300))); err != nil || fitted.Scores.Classes.AUC < 0.9 {
		t.Errorf("%v, %+v", err, fitted)
	}
	text, err := learn.Kinds{}.MarshalTask(learn.Task{Plan: prepare.Plan{Target: "sold", Stages: []table.Stage{}}, Learner: &learn.Linear{}})
	if read, faulty := (learn.Kinds{}).UnmarshalTask(text); err != nil || faulty != nil || read.Stages == nil {
		t.Errorf("%v, %v, %s: a task without stages has the learner's own, %v", err, faulty, text, read.Stages)
	}
	for text, says := range map[string]string{
		`{"learner": {"kind": "boots"}}`:                                `no learner "boots"`,
		`{"learner": {"kind": "boost", "settings": {"trees": "many"}}}`: "settings of boost",
		`{"learner": {"kind": "tree"}, "pipeline": {"version": 2}}`:     "version 2",
		`[]`: "reading a task",
	} {
		if _, err := (learn.Kinds{}).UnmarshalTask([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := (learn.Kinds{}).MarshalTask(learn.Task{Learner: &median{}}); err == nil || !strings.Contains(err.Error(), "*learn_test.median") {
		t.Error(err)
	}
}

// few is a stage of a service that leaves rows out, as stages may.
type few struct{ half }

func (*few) Transform(b *table.Batch) (*table.Batch, error) { return b.Pick([]int{0}), nil }

// Predictions are of all rows, or none: where a stage leaves some out, nobody could tell whose they are.
func TestPredictionsOfAllRowsOrNone(t *testing.T) {
	file := learn.File{Pipeline: &prepare.Pipeline{Input: table.Schema{Fields: []table.Field{{Name: "size"}}}, Stages: []table.Stage{&few{}}}, Model: &median{Of: "size"}}
	for rows, want := range map[int]int{1: 1, 3: 0} {
		got, err := file.Predict(nil, &table.Batch{Rows: rows, Columns: []table.Column{{Name: "size", Numbers: make([]float64, rows)}}})
		if len(got) != want || (err == nil) != (want == rows) {
			t.Errorf("%d predictions of %d rows, %v", len(got), rows, err)
		}
	}
}
