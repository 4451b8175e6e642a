package learn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// prepared are rows as a pipeline makes them, with a target that the columns tell but for a little noise.
func prepared(t *testing.T, b *table.Batch, target func(row int) float64) learn.Rows {
	t.Helper()
	p := &prepare.Pipeline{Stages: []table.Stage{&prepare.OneHot{}}}
	for _, c := range b.Columns {
		p.Input.Fields = append(p.Input.Fields, table.Field{Name: c.Name, Kind: c.Kind})
	}
	if err := p.Fit(t.Context(), table.Alone{}, table.InMemory(b)); err != nil {
		t.Fatal(err)
	}
	out, err := p.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	rng, rows := rand.New(rand.NewPCG(1, 2)), learn.Rows{Features: out}
	for row := range b.Rows {
		rows.Target = append(rows.Target, target(row)+0.001*rng.NormFloat64())
	}
	return rows
}

// scores are those of a ridge, and of a logistic regression on whether the target is above 0.
func scores(t *testing.T, rows learn.Rows) (rmse, auc float64) {
	t.Helper()
	of := func(l learn.Learner) learn.Scores {
		m, err := l.Fit(t.Context(), table.Alone{}, rows)
		if err != nil {
			t.Fatal(err)
		}
		s, err := learn.Evaluate(t.Context(), table.Alone{}, m, rows)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	rmse = of(&learn.Linear{Ridge: 0.001}).Numbers.RMSE
	rows.Classes = []string{"no", "yes"}
	rows.Target = append([]float64(nil), rows.Target...)
	for i, y := range rows.Target {
		if rows.Target[i] = 0; y > 0 {
			rows.Target[i] = 1
		}
	}
	return rmse, of(&learn.Logistic{}).Classes.AUC
}

// TestOneHotNamesDoNotMeet has the two ways in which a name "COLUMN=VALUE" may be that of another column:
// models would know one of the two only.
func TestOneHotNamesDoNotMeet(t *testing.T) {
	const n = 2000
	rng := rand.New(rand.NewPCG(3, 4))
	column := func(name string, values ...string) table.Column {
		c := table.Column{Name: name, Kind: table.Category, Values: values}
		for range n {
			c.Codes = append(c.Codes, int32(rng.IntN(len(values))))
		}
		return c
	}
	is := func(c table.Column, row, code int) float64 {
		if c.Codes[row] == int32(code) {
			return 1
		}
		return 0
	}
	a, ab := column("a", "b=c", "d"), column("a=b", "c", "d")
	color, plain := column("color", "red", "blue"), table.Column{Name: "color=red"}
	for range n {
		plain.Numbers = append(plain.Numbers, rng.NormFloat64())
	}
	for _, of := range []struct {
		columns []table.Column
		target  func(row int) float64
		names   string
	}{
		{[]table.Column{a, ab}, func(row int) float64 { return 5*is(a, row, 0) - 3*is(ab, row, 0) - 0.5 },
			`"a"=b=c a=d a=other "a=b"=c a=b=d a=b=other`},
		{[]table.Column{ab, a}, func(row int) float64 { return 5*is(a, row, 0) - 3*is(ab, row, 0) - 0.5 },
			`"a=b"=c a=b=d a=b=other "a"=b=c a=d a=other`},
		{[]table.Column{color, plain}, func(row int) float64 { return 4*is(color, row, 0) + 3*plain.Numbers[row] },
			`color=blue "color"=red color=other color=red`},
	} {
		rows := prepared(t, &table.Batch{Rows: n, Columns: of.columns}, of.target)
		var names []string
		for _, c := range rows.Features.Columns {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != of.names {
			t.Errorf("columns %s, want %s", got, of.names)
		}
		rmse, auc := scores(t, rows)
		if rmse > 0.01 || auc < 0.999 {
			t.Errorf("%s: RMSE %.4g and AUC %.4f", of.names, rmse, auc)
		} else {
			t.Logf("%s: RMSE %.4g and AUC %.4f", of.names, rmse, auc)
		}
	}
}

// TestEqualNamesAreRefused shows that nothing is fitted on columns of one name, or prepared.
func TestEqualNamesAreRefused(t *testing.T) {
	b := &table.Batch{Rows: 4, Columns: []table.Column{{Name: "x", Numbers: []float64{1, 2, 3, 4}}, {Name: "x", Numbers: []float64{4, 3, 2, 2}}}}
	rows := learn.Rows{Features: b, Target: []float64{0, 1, 1, 0}, Classes: []string{"a", "b"}}
	for _, l := range []learn.Learner{&learn.Linear{}, &learn.Logistic{}, &learn.GaussianNB{}, &learn.MultinomialNB{}, learn.KMeans{}, learn.PCA{}, learn.Tree{}, learn.Boost{},
		&learn.Ensemble{Learner: learn.Tree{}}} {
		if _, err := l.Fit(t.Context(), table.Alone{}, rows); err == nil || !strings.Contains(err.Error(), `called "x"`) {
			t.Errorf("%T: %v", l, err)
		}
	}
	p := &prepare.Pipeline{Input: table.Schema{Fields: []table.Field{{Name: "x"}, {Name: "x"}}}}
	if _, err := p.Transform(b); err == nil || !strings.Contains(err.Error(), `called "x"`) {
		t.Error(err)
	}
	twice := &learn.LinearModel{Coefficients: learn.Coefficients{Columns: []string{"color=red", "color=red"}, Intercept: []float64{0}, Weights: [][]float64{{1, 1}}}}
	var file bytes.Buffer
	if err := learn.Save(&file, learn.File{Model: twice}); err != nil {
		t.Fatal(err)
	}
	if _, err := learn.Load(&file); !errors.Is(err, learn.ErrModelFile) || !strings.Contains(err.Error(), "color=red") {
		t.Error(err)
	}
}

// TestModelsOfYesterday reads what the build of 2026-11-24 (3c1c9d5) wrote, and predicts as that did.
func TestModelsOfYesterday(t *testing.T) {
	data, err := os.ReadFile("testdata/models-1")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/models-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := &table.Batch{Rows: 6, Columns: []table.Column{
		{Name: "size", Numbers: []float64{1, 2, 3, 4, 5, 600}}, {Name: "flat", Numbers: []float64{7, 7, 7, 7, 7, 7}},
		{Name: "city", Kind: table.Category, Codes: []int32{0, 1, 2, -1, 0, 1}, Values: []string{"Oslo", "Rome", "b=c"}},
	}}
	var got strings.Builder
	for _, text := range strings.Split(string(data), "murmuration model ")[1:] {
		file, err := learn.Load(strings.NewReader("murmuration model " + text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := file.Model.Predict(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%T %.6g\n", file.Model, p)
	}
	if got.String() != string(want) {
		t.Errorf("predictions\n%s\nwant\n%s", got.String(), want)
	}
}
