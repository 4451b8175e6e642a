package search

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer/search"
)

// TestAModelOfASearchBefore has the place and the size of a new one, since its journal was moved away and its folder was not: the new
// one is written over it, once.
func TestAModelOfASearchBefore(t *testing.T) {
	s, err := read("example.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	journal, held := filepath.Join(t.TempDir(), "j.json"), search.Held{Trial: 0, Steps: s.config.Rungs()[0]}
	if err := os.Mkdir(journal+modelsSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(modelPath(journal, held), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	models, safe := map[search.Held][]byte{held: []byte("new")}, map[search.Held]bool{}
	results := []search.Result{{Trial: held.Trial, Steps: held.Steps, Outcome: search.Outcome{Model: hashOf(models[held])}}}
	if err := s.record(journal, results, models, safe); err != nil {
		t.Fatal(err)
	}
	_, read, err := s.resumed(journal, func(text string) { t.Error(text) })
	if err != nil || !slices.Equal(read[held], models[held]) {
		t.Errorf("resumed with the model %q, %v", read[held], err)
	}
	models[held] = nil // it is not written again
	if err := s.record(journal, results, models, safe); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(modelPath(journal, held)); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestWhatHasFailedIsLast in tables and pictures, however far it came.
func TestWhatHasFailedIsLast(t *testing.T) {
	r := Result{Trials: []Trial{{Trial: 0, Rung: 9, Score: 0.9, Failed: "not finite"}, {Trial: 1, Rung: 3, Score: 0.7}, {Trial: 2, Rung: 9, Score: 0.8}}}
	var order []int
	for _, one := range r.ranked() {
		order = append(order, one.Trial)
	}
	if !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("ranked %v", order)
	}
}
