package baseline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

// shop is a server of pushes that take no time, in which workers compute for as long as
// they are told to. It knows nothing of what gates do.
type shop struct {
	gate    Gate
	board   Board
	now     time.Duration
	due     []time.Duration // when each worker pushes; 0 if it waits
	compute func(worker int) time.Duration
	most    int // the largest lead of one that was let go on
	done    int
	waited  time.Duration
	since   []time.Duration
}

func hand(i int) topology.PeerID { return topology.PeerID(fmt.Sprint("w", i)) }

func newShop(gate Gate, n int, compute func(int) time.Duration) *shop {
	s := &shop{gate: gate, compute: compute, due: make([]time.Duration, n), since: make([]time.Duration, n)}
	for i := range n {
		s.board.Add(hand(i))
		s.due[i] = compute(i)
	}
	return s
}

// run lets so many pushes happen.
func (s *shop) run(pushes int) {
	for range pushes {
		next := -1
		for i, at := range s.due {
			if at > 0 && (next < 0 || at < s.due[next]) {
				next = i
			}
		}
		if next < 0 {
			panic("everybody waits")
		}
		s.now, s.due[next] = s.due[next], 0
		s.since[next] = s.now
		s.board.Pushed(hand(next), s.now)
		if s.gate.Lets(hand(next), true, &s.board) {
			s.release(next)
		}
		for i, at := range s.due {
			if at == 0 && s.gate.Lets(hand(i), false, &s.board) {
				s.release(i)
			}
		}
	}
}

func (s *shop) release(i int) {
	s.most = max(s.most, s.board.Lead(hand(i)))
	s.waited += s.now - s.since[i]
	s.done++
	s.due[i] = s.now + s.compute(i)
}

// printed is DSSP as the paper prints it: a grant knows no bound.
type printed struct{ *DSSP }

func (g printed) Lets(id topology.PeerID, pushed bool, board *Board) bool {
	if !pushed {
		return g.DSSP.Lets(id, false, board)
	}
	w := board.of(id)
	if w.granted > 0 {
		w.granted--
		return true
	}
	if board.Lead(id) <= g.lower {
		return true
	}
	if board.Fastest(id) {
		w.granted = controller(id, board, g.upper-g.lower)
	}
	return w.granted > 0
}

func dssp(lower, upper int) *DSSP {
	g, err := NewDSSP(lower, upper)
	if err != nil {
		panic(err)
	}
	return g
}

// speeds are a random flock: unequal, jittered, slow for a while.
func speeds(r *rapid.T, n int) func(int) time.Duration {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
	base := make([]int, n)
	for i := range base {
		base[i] = rapid.SampledFrom([]int{100, 100, 150, 200, 1000, 10000}).Draw(r, "base")
	}
	jitter := rapid.IntRange(0, 90).Draw(r, "jitter")
	return func(i int) time.Duration {
		d := base[i]*(100-jitter) + base[i]*rng.IntN(2*jitter+1)
		if rng.IntN(50) == 0 {
			d *= 8
		}
		return time.Duration(d+1) * time.Microsecond
	}
}

func TestNoLeadBeyondTheBound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "workers")
		lower := rapid.IntRange(0, 5).Draw(r, "lower")
		upper := lower + rapid.IntRange(0, 15).Draw(r, "more")
		compute := speeds(r, n)
		for _, c := range []struct {
			gate  Gate
			bound int
		}{{BSP{}, 0}, {SSP{lower}, lower}, {dssp(lower, upper), upper}} {
			s := newShop(c.gate, n, compute)
			s.run(600)
			if s.most > c.bound {
				r.Fatalf("%T let a worker be %d ahead, bound %d", c.gate, s.most, c.bound)
			}
		}
	})
}

// What the paper prints breaks its own bound, and what is built here does not.
func TestPrintedControllerBreaksItsBound(t *testing.T) {
	const lower, upper = 3, 15
	compute := func(i int) time.Duration {
		if i == 0 {
			return time.Second
		}
		return time.Duration(90+i*7) * time.Millisecond
	}
	asPrinted := newShop(printed{dssp(lower, upper)}, 4, compute)
	asPrinted.run(2000)
	clamped := newShop(dssp(lower, upper), 4, compute)
	clamped.run(2000)
	t.Logf("largest lead, bound %d: %d as printed, %d clamped", upper, asPrinted.most, clamped.most)
	if asPrinted.most <= upper {
		t.Error("the printed controller keeps its bound: this test shows nothing")
	}
	if clamped.most > upper || clamped.most <= lower {
		t.Errorf("clamped, the largest lead is %d: want above %d, up to %d", clamped.most, lower, upper)
	}
}

// Throughput of the four, relative to BSP where all are equally fast: a table to be read.
func TestThroughputOfGates(t *testing.T) {
	per := func(gate Gate, slow int) float64 {
		rng := rand.New(rand.NewPCG(1, 1))
		s := newShop(gate, 4, func(i int) time.Duration {
			d := 70 + rng.IntN(60)
			if rng.IntN(40) == 0 {
				d *= 5
			}
			if i == 0 {
				d *= slow
			}
			return time.Duration(d) * time.Millisecond
		})
		s.run(4000)
		return float64(s.done) / s.now.Seconds()
	}
	for _, slow := range []int{1, 2, 10} {
		var line strings.Builder
		rate := map[string]float64{}
		for _, g := range []struct {
			name string
			gate Gate
		}{{"BSP", BSP{}}, {"SSP(3)", SSP{3}}, {"DSSP(3..15)", dssp(3, 15)}, {"SSP(15)", SSP{15}}, {"ASP", ASP{}}} {
			rate[g.name] = per(g.gate, slow)
			fmt.Fprintf(&line, "  %s %.2f", g.name, rate[g.name])
		}
		t.Logf("a worker %d times slower, iterations a second:%s", slow, line.String())
		if !(rate["BSP"] <= rate["SSP(3)"] && rate["SSP(3)"] <= rate["DSSP(3..15)"]*1.05 && rate["SSP(3)"] <= rate["ASP"]) {
			t.Errorf("out of order: %v", rate)
		}
	}
}

func TestGatesThatCannotBe(t *testing.T) {
	if _, err := NewSSP(-1); err == nil {
		t.Error("SSP of -1 is no gate")
	}
	_, err := NewDSSP(-1, -2)
	if err == nil || !strings.Contains(err.Error(), "want 0") || !strings.Contains(err.Error(), "exceeds") {
		t.Errorf("not all faults are named: %v", err)
	}
}
