package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the plans in testdata from what is planned now; see that none is longer")

// TestPlansAreAsBefore: what is planned for random states does not change as planning gets faster.
func TestPlansAreAsBefore(t *testing.T) {
	type was struct {
		Makespan float64
		Plan     string // hash
	}
	path := filepath.Join("testdata", "plans.json")
	var before, now []was
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := fleet(r, 1+r.IntN(60), 1+r.IntN(60))
		s.Weights = Weights{1, float64(r.IntN(3) * 50), float64(r.IntN(3) * 50)}
		if seed < 2 {
			s = fleet(r, 100, 400)
		}
		p, err := Make(s)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		now = append(now, was{p.Makespan, hex.EncodeToString(sum[:8])})
	}
	if *rewrite {
		text, err := json.Marshal(now)
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil || len(before) != len(now) {
		t.Fatalf("%d plans of before, %v", len(before), err)
	}
	for seed := range now {
		if now[seed] != before[seed] {
			t.Errorf("seed %d: %+v, before %+v", seed, now[seed], before[seed])
		}
	}
}
