package baseline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

func merging(t failer, config merge.Config) func(topology.PeerID) collective.Machine {
	return func(id topology.PeerID) collective.Machine {
		inner, err := averaging.NewADPSGD(averaging.Config{
			Self: id, Pace: averaging.Pace{Every: 2}, Deadline: config.Deadline, Rand: rand.New(rand.NewPCG(1, uint64(id[0]))),
		})
		if err != nil {
			t.Fatal(err)
		}
		config.Self = id
		m, err := merge.New(config, inner)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// After the merge all have the same bytes, which are the mean of what they had.
func TestMergeGivesAllTheSameBytes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 13} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, uint64(n), merging(t, merge.Config{Deadline: 5 * time.Second}))
			traced(w)
			for i, id := range names(n) {
				w.join(id, steady(time.Duration(10+i)*time.Millisecond)).start()
			}
			w.view(time.Millisecond)
			w.queue.Run(time.Second)
			before := map[vector]bool{}
			var mean vector
			for _, p := range w.peers {
				before[p.x] = true
				for i := range mean {
					mean[i] += p.x[i] / float64(n)
				}
			}
			if n > 2 && len(before) < 2 {
				t.Fatal("the models are the same before the merge: the test shows nothing")
			}
			for _, p := range w.peers {
				p.finish() // from here on there are no steps, and exchanges keep the mean
			}
			w.queue.Run(90 * time.Second)
			for id, p := range w.peers {
				if !p.settled {
					t.Errorf("%s has not settled", id)
				}
				if p.x != w.peers["aa"].x {
					t.Errorf("%s has %v, aa %v", id, p.x, w.peers["aa"].x)
				}
				for i := range mean {
					if math.Abs(p.x[i]-mean[i]) > 1e-9 {
						t.Errorf("%s has %v, the mean is %v", id, p.x, mean)
					}
				}
			}
			if left := w.queue.Len(); left > 0 {
				t.Errorf("%d things are due long after the merge", left)
			}
		})
	}
}

// Whatever happens, all settle; and without deaths in the merge, loss or not, all who
// were done in time have the same model.
func TestMergeSurvives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r, rapid.Uint64().Draw(r, "seed"), merging(r, merge.Config{
			Deadline: time.Second,
		}))
		w.patience = 8 * time.Second
		traced(w)
		hardships(r, w, 0.004)
		models := map[vector]int{}
		for _, p := range w.peers {
			if p.alive {
				models[p.x]++
			}
		}
		if len(models) > 1 && w.loss == 0 && w.breaks == 0 {
			r.Fatalf("%d models after the merge: %v", len(models), models)
		}
	})
}

func TestMergeThatCannotBe(t *testing.T) {
	_, err := merge.New(merge.Config{Deadline: -1, Weight: 0.5}, nil)
	for _, fault := range []string{"Self", "Deadline", "Weight", "no machine"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not named: %v", fault, err)
		}
	}
	inner, err := merge.New(merge.Config{Self: "a"}, &averaging.ADPSGD{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := merge.New(merge.Config{Self: "a"}, inner); err == nil || !strings.Contains(err.Error(), "timer") {
		t.Errorf("two machines that set the same timer: %v", err)
	}
}

// A member whose machine knows no merge costs the others a wait, and nothing else.
func TestMergeWithOneThatDoesNot(t *testing.T) {
	const deadline, other = time.Second, "ba"
	merges := merging(t, merge.Config{Deadline: deadline})
	w := newWorld(t, 1, func(id topology.PeerID) collective.Machine {
		if id != other {
			return merges(id)
		}
		plain, err := averaging.NewADPSGD(averaging.Config{Self: id, Rand: rand.New(rand.NewPCG(1, 1))})
		if err != nil {
			t.Fatal(err)
		}
		return collective.Of(plain)
	})
	traced(w)
	for _, id := range names(4) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second)
	for _, p := range w.peers {
		p.finish()
	}
	w.queue.Run(w.queue.Now() + 3*deadline)
	for id, p := range w.peers {
		if merged := p.x == w.peers["aa"].x; !p.settled || merged != (id != other) {
			t.Errorf("%s has settled: %t, with %v", id, p.settled, p.x)
		}
	}
}

// Who is done at about the moment at which the others stop waiting for it merges with them
// or gets their result.
func TestMergeWithWhoIsAlmostTooLate(t *testing.T) {
	for late := 990 * time.Millisecond; late < 1040*time.Millisecond; late += time.Millisecond {
		w := newWorld(t, uint64(late), merging(t, merge.Config{Deadline: time.Second}))
		traced(w)
		for _, id := range names(2) {
			w.join(id, steady(10*time.Millisecond)).start()
		}
		w.view(time.Millisecond)
		w.queue.Run(time.Second)
		w.peers["aa"].finish()
		w.queue.Run(time.Second + late)
		w.peers["ba"].finish()
		w.queue.Run(time.Minute)
		if a, b := w.peers["aa"], w.peers["ba"]; !a.settled || !b.settled || a.x != b.x {
			t.Errorf("%s late: %v, settled %t; %v, settled %t", late, a.x, a.settled, b.x, b.settled)
		}
	}
}
