package baseline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

func TestAllFaultsAreNamed(t *testing.T) {
	bad := baseline.Config{Deadline: -1, Batch: -1}
	_, ring := baseline.NewAllReduce(bad)
	_, local := baseline.NewDiLoCo(bad, baseline.Outer{Rate: -1, Momentum: 1})
	_, server := baseline.NewParamServer(bad, nil)
	_, neighbours := baseline.NewDPSGD(bad)
	for _, c := range []struct {
		err   error
		words []string
	}{
		{ring, []string{"AllReduce", "Self", "Deadline", "Batch"}},
		{local, []string{"DiLoCo", "Self", "Deadline", "Batch", "Every", "Rate", "Momentum"}},
		{server, []string{"parameter server", "Self", "Deadline", "Batch", "gate"}},
		{neighbours, []string{"D-PSGD", "Self", "Deadline", "Batch"}},
	} {
		for _, w := range c.words {
			if c.err == nil || !strings.Contains(c.err.Error(), w) {
				t.Errorf("%q is not named in: %v", w, c.err)
			}
		}
	}
}

// The machines are what the runtime takes them for.
var (
	_ collective.Machine = (*baseline.AllReduce)(nil)
	_ collective.Machine = (*baseline.ParamServer)(nil)
	_ collective.Machine = (*baseline.DPSGD)(nil)
	_ collective.Machine = (*merge.Machine)(nil)
)

// A server that was named serves as long as it is there; then another does.
func TestNamedServerIsLost(t *testing.T) {
	const deadline = time.Second
	w := newWorld(t, 1, paramServer(t, baseline.Config{Server: "aa", Deadline: deadline}, gates(t)["bsp"]))
	traced(w)
	for _, id := range names(3) {
		w.join(id, steady(10*time.Millisecond)).start()
	}
	w.view(time.Millisecond)
	w.queue.Run(time.Second)
	for _, p := range w.peers {
		if p.steps < 10 {
			t.Fatalf("%s has made %d steps with its server", p.id, p.steps)
		}
	}
	if own := w.peers["aa"]; own.updates < 10 {
		t.Fatalf("the named server has made %d updates", own.updates)
	}
	w.die("aa", 50*time.Millisecond)
	before := w.peers["ba"].steps
	w.queue.Run(time.Second + 2*deadline + 200*time.Millisecond)
	for _, id := range []topology.PeerID{"ba", "ca"} {
		if p := w.peers[id]; p.halted != 0 || p.steps < before+10 {
			t.Errorf("%s is halted for %q after %d steps", id, p.halted, p.steps-before)
		}
	}
	w.join("da", steady(10*time.Millisecond)).start()
	w.view(time.Millisecond)
	w.queue.Run(w.queue.Now() + deadline)
	if p := w.peers["da"]; p.halted != 0 || p.steps < 10 {
		t.Errorf("da, which comes after the named server has died, is halted for %q after %d steps", p.halted, p.steps)
	}
}

// With batches by speed all are ready together; with equal ones the flock waits for the
// slowest, which makes it about twice as slow at speeds of 1:1:2:4.
func TestBatchesBySpeed(t *testing.T) {
	const each = 32
	speeds := map[topology.PeerID]float64{"aa": 20, "ba": 20, "ca": 40, "da": 80} // samples a second
	rounds := func(batch int, machine func(topology.PeerID) collective.Machine) float64 {
		w := newWorld(t, 1, machine)
		w.maxDelay = 100 * time.Microsecond
		for _, id := range names(4) {
			var p *node
			p = w.join(id, func() time.Duration {
				n := each
				if b := p.batch; b > 0 {
					n = b
				}
				return time.Duration(float64(n) / speeds[id] * float64(time.Second))
			})
			p.given = each
			w.queue.After(0, p.start)
		}
		w.view(time.Millisecond)
		w.queue.Run(50 * time.Second)
		before := w.peers["aa"].steps
		w.queue.Run(250 * time.Second)
		return 200 / float64(w.peers["aa"].steps-before)
	}
	ideal := 4 * each / (20. + 20 + 40 + 80)
	for name, machine := range map[string]func(batch int) func(topology.PeerID) collective.Machine{
		"allreduce": func(batch int) func(topology.PeerID) collective.Machine {
			return allReduce(t, baseline.Config{Batch: batch})
		},
		"bsp": func(batch int) func(topology.PeerID) collective.Machine {
			return paramServer(t, baseline.Config{Batch: batch}, gates(t)["bsp"])
		},
	} {
		balanced, equal := rounds(each, machine(each)), rounds(0, machine(0))
		t.Logf("%s: a round takes %.1f ms, with equal batches %.1f; B over the sum of speeds is %.1f", name, 1e3*balanced, 1e3*equal, 1e3*ideal)
		if balanced > 1.1*ideal || equal < 1.8*balanced {
			t.Errorf("%s: rounds of %.1f ms by speed, %.1f by equal batches", name, 1e3*balanced, 1e3*equal)
		}
	}
}
