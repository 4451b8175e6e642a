package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
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

func TestLarge(t *testing.T) {
	for seed := range uint64(10) {
		s := fleet(rand.New(rand.NewPCG(seed, 1)), 100, 400)
		began := time.Now()
		p, err := Make(s)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		q, _ := newProblem(s)
		b0 := time.Now()
		l := least(q)
		b1 := time.Now()
		bb := least(q)
		b2 := time.Now()
		t.Logf("seed %d: %.1f ms, makespan %.1f, %.4f of bound (closed %.4f), %d pieces, feasible %v, resource %.3f; least %v bound %v", seed, took.Seconds()*1e3, p.Makespan, p.Makespan/p.Bound, l/bb, len(p.Assignments), p.Feasible, p.Resource, b1.Sub(b0), b2.Sub(b1))
		s.Weights = Weights{1, 300, 300}
		began = time.Now()
		w, _ := Make(s)
		t.Logf("    weighted: %.1f ms makespan %.1f accuracy %.4f (%.4f), resource %.3f", time.Since(began).Seconds()*1e3, w.Makespan, w.Accuracy, p.Accuracy, w.Resource)
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
