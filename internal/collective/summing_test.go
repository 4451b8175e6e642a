package collective_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

// lengths are those of sums whose steps go in one chunk, and in several.
var lengths = []int{width, 1 << 21, 1 << 24}

// TestSumsOfHealthyPeers shows that peers of whom nobody dies, and between whom nothing is lost, have each sum, of all of them.
func TestSumsOfHealthyPeers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "peers")
		w := newWorld(r, rapid.Uint64().Draw(r, "seed"), n, rapid.SampledFrom(lengths).Draw(r, "length"),
			rapid.SampledFrom([]topology.Shape{topology.Exponential, topology.Ring, topology.Tree}).Draw(r, "shape"))
		w.most = time.Duration(rapid.IntRange(0, 30).Draw(r, "delay")) * time.Millisecond
		if rapid.Bool().Draw(r, "the owner says who coordinates") {
			w.restart(w.peers[rapid.IntRange(0, n-1).Draw(r, "coordinator")].id)
		}
		names := w.call(3, time.Second)
		w.runUntilEnded(names)
		for _, name := range names {
			if parts := w.partsOf(w.peers[0].ends[name].sum[0]); len(parts) != n {
				r.Errorf("%q is of %q, of %d peers", name, parts, n)
			}
		}
	})
}

// TestSumsSurvive shows that whatever happens, all who live and have a result have the same one, which is the sum of the parts of some,
// theirs among them, each once; and that nobody is stuck for ever.
func TestSumsSurvive(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(r, "peers")
		w := newWorld(r, rapid.Uint64().Draw(r, "seed"), n, rapid.SampledFrom(lengths).Draw(r, "length"),
			rapid.SampledFrom([]topology.Shape{topology.Exponential, topology.Ring, topology.Tree}).Draw(r, "shape"))
		w.most = time.Duration(rapid.IntRange(0, 30).Draw(r, "delay")) * time.Millisecond
		w.loss = rapid.SampledFrom([]float64{0, 0, 0.05, 0.1}).Draw(r, "loss")
		w.breaks = rapid.SampledFrom([]float64{0, 0, 0.0005, 0.005}).Draw(r, "breaks")
		w.stops = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond}).Draw(r, "until aborts are heard of")
		w.refuse = rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond}).Draw(r, "until refusals are")
		w.slowLinks(rapid.SampledFrom([]float64{0, 0.2}).Draw(r, "slow links"))
		names := w.call(rapid.IntRange(1, 3).Draw(r, "sums"), 500*time.Millisecond)
		for range rapid.IntRange(0, n).Draw(r, "happenings") {
			p := w.peers[rapid.IntRange(0, n-1).Draw(r, "who")]
			how := rapid.SampledFrom([]string{"dies", "dies unseen", "freezes", "cancels", "is unfit"}).Draw(r, "how")
			p.fates[rapid.IntRange(0, 60).Draw(r, "when it has done so many things")] = func() {
				switch how {
				case "dies":
					p.dies(time.Second)
				case "dies unseen":
					p.dies(unseen)
				case "freezes":
					p.freezes()
				case "cancels":
					w.at(0, p.cancels)
				case "is unfit":
					p.unfit = true
				}
			}
		}
		w.runUntilEnded(names)
	})
}

// call has all peers call so many sums, and begin within a time.
func (w *world) call(sums int, within time.Duration) (names []string) {
	for i := range sums {
		names = append(names, fmt.Sprint("sum ", i+1))
	}
	for _, p := range w.peers {
		p.calls = names
		w.queue.After(w.upTo(within), p.next)
	}
	return names
}

// slowLinks has words take longer on a share of the links.
func (w *world) slowLinks(share float64) {
	for _, from := range w.peers {
		for _, to := range w.peers {
			if w.rand.Float64() < share {
				w.slow[[2]topology.PeerID{from.id, to.id}] = w.upTo(300 * time.Millisecond)
			}
		}
	}
}

// restart has the owners say who coordinates.
func (w *world) restart(leads topology.PeerID) {
	for _, p := range w.peers {
		p.does(func() { p.Restart(leads) })
	}
}

// runUntilEnded lets the world go on until all sums have ended for all who live, a quarter of an hour at most, and checks the ends.
func (w *world) runUntilEnded(names []string) {
	for w.queue.Now() < 15*time.Minute && w.underWay(names) {
		w.queue.Run(w.queue.Now() + time.Second)
	}
	w.check(names)
}

func (w *world) underWay(names []string) bool {
	for _, p := range w.peers {
		if _, ended := p.ends[p.called]; !p.gone && !p.frozen && (!ended || len(p.calls) > 0) {
			return true
		}
	}
	return false
}
