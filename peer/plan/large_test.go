package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// fleet is a random state of that many tasks and members, of all kinds, some with little memory or a slow link; nearly
// all deadlines can be kept.
func fleet(r *rand.Rand, tasks, members int) State {
	var s State
	total, speed := 0.0, 0.0
	for i := range members {
		m := Member{Name: fmt.Sprintf("member%03d", i), Speed: 100 * (1 + 7*r.Float64()), Memory: float64(int(2) << r.IntN(4)), Link: 1e5 * (1 + 9*r.Float64())}
		speed += m.Speed
		s.Members = append(s.Members, m)
	}
	for i := range tasks {
		t := Task{Name: fmt.Sprintf("task%03d", i), Kind: Epoch, Samples: 1000 + r.IntN(60_000), Cost: 1 + 3*r.Float64(), Memory: float64(int(1) << r.IntN(4)), Bytes: float64(r.IntN(200))}
		if r.IntN(3) == 0 {
			t.Kind, t.Samples = Evaluation, 100+r.IntN(2000)
			if r.IntN(2) == 0 {
				t.Kind = Fit
			}
		} else {
			t.Most, t.Curve = 2*t.Samples, []Point{{1000, 0.5}, {10_000, 0.7 + 0.1*r.Float64()}, {100_000, 0.85}}
		}
		total += float64(t.Samples) * t.Cost
		s.Tasks = append(s.Tasks, t)
	}
	for i := range s.Tasks {
		if t := &s.Tasks[i]; r.IntN(4) == 0 {
			t.Deadline = total / speed * (1 + r.Float64())
		} else if r.IntN(5) == 0 {
			t.Arrival = total / speed * 0.5 * r.Float64()
		}
	}
	return s
}

// Plans of a hundred tasks for four hundred members are within a tenth of the bound; BenchmarkLarge says what one takes.
func TestLarge(t *testing.T) {
	worst := 0.0
	for seed := range uint64(10) {
		s := fleet(rand.New(rand.NewPCG(seed, 1)), 100, 400)
		p := made(t, s)
		worst = max(worst, p.Makespan/p.Bound)
	}
	if t.Logf("at most %.3f of the bound", worst); worst > 1.1 {
		t.Errorf("%v of the bound", worst)
	}
}

func BenchmarkLarge(b *testing.B) {
	s := fleet(rand.New(rand.NewPCG(0, 1)), 100, 400)
	for b.Loop() {
		if _, err := Make(s); err != nil {
			b.Fatal(err)
		}
	}
}
