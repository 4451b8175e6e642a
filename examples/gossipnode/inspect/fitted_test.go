package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// What fit has written is told: what it wants, and which columns count most.
func TestInspectFitted(t *testing.T) {
	a, b := make([]float64, 100), make([]float64, 100)
	target := make([]float64, 100)
	for i := range a {
		a[i], b[i], target[i] = float64(i%7), float64(i%10), float64(i%10/5)
	}
	features := &table.Batch{Rows: 100, Columns: []table.Column{{Name: "a", Numbers: a}, {Name: "b", Numbers: b}}}
	fields := []table.Field{{Name: "a"}, {Name: "b"}}
	stages := &prepare.Pipeline{Input: table.Schema{Fields: fields}, Stages: []table.Stage{&prepare.Impute{Indicator: true}}}
	if err := stages.Fit(t.Context(), table.Alone{}, table.InMemory(features)); err != nil {
		t.Fatal(err)
	}
	learnedFrom := learn.Rows{Features: features, Target: target, Classes: []string{"no", "yes"}}
	for learner, as := range map[learn.Learner]string{learn.Tree{}: "trees", &learn.Logistic{}: "logistic", &learn.GaussianNB{}: "gaussian-nb"} {
		model, err := learner.Fit(t.Context(), table.Alone{}, learnedFrom)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m")
		out, err := os.Create(path)
		if err == nil {
			err = learn.Save(out, learn.File{Pipeline: stages, Target: "y", Classes: learnedFrom.Classes, Features: fields, Model: model})
		}
		if err != nil || out.Close() != nil {
			t.Fatal(err)
		}
		code, text, _ := try("inspect", path, "--json")
		var f Fitted
		if err := json.Unmarshal([]byte(text), &f); err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, text)
		}
		if f.Kind != "fitted model" || f.Model != as || f.Target != "y" || len(f.Features) != 2 || len(f.Stages) != 1 || (as == "gaussian-nb") != (len(f.Columns) == 0) || len(f.Columns) > 0 && f.Columns[0].Name != "b" {
			t.Errorf("%+v", f)
		}
		if code, text, _ := try("inspect", path); code != 0 || !strings.Contains(text, "classes  no, yes") || !strings.Contains(text, "stages   Impute") {
			t.Errorf("exit code %d, %s", code, text)
		}
		if err := os.Truncate(path, 200); err != nil {
			t.Fatal(err)
		}
		if code, _, logged := try("inspect", path); code != cli.ExitFailed || !strings.Contains(logged, "copy it again") {
			t.Errorf("a torn one: exit code %d, %s", code, logged)
		}
	}
	path := filepath.Join(t.TempDir(), "pipeline.json")
	p := prepare.Prepared{Pipeline: stages, Labels: &table.Labels{Target: table.Target{Column: "y"}, Classes: learnedFrom.Classes}, Rows: 100}
	if err := rows.Save(&p, path); err != nil {
		t.Fatal(err)
	}
	if code, text, _ := try("inspect", path); code != 0 || !strings.Contains(text, "preparation of rows") || !strings.Contains(text, "b        number") {
		t.Errorf("exit code %d, %s", code, text)
	}
}
