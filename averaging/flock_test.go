package averaging_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// world runs machines against each other in virtual time, over a network that
// delays every word at random, and averages one number a peer as exchanges
// finish. It checks that no peer is on two exchanges of one side at once.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	queue    sim.Queue
	machines map[topology.PeerID]*averaging.ADPSGD
	values   map[topology.PeerID]float64
	inbound  map[topology.PeerID]bool
	done     map[topology.PeerID]int
	steps    map[topology.PeerID]int
}

// delay is the time of one word on the network.
func (w *world) delay() time.Duration { return time.Duration(1+w.rng.IntN(5)) * time.Millisecond }

func (w *world) tell(id topology.PeerID, event averaging.Event) {
	for _, action := range w.machines[id].Handle(w.queue.Now(), event, nil) {
		w.carryOut(id, action)
	}
}

func (w *world) carryOut(id topology.PeerID, a averaging.Action) {
	switch a.Kind {
	case averaging.Propose:
		w.queue.After(w.delay(), func() {
			w.tell(a.Peer, averaging.Event{Kind: averaging.Proposed, Peer: id, Exchange: a.Exchange, Inbound: true})
		})
	case averaging.Refuse:
		w.queue.After(w.delay(), func() {
			w.tell(a.Peer, averaging.Event{Kind: averaging.Refused, Peer: id, Exchange: a.Exchange, Reason: a.Reason})
		})
	case averaging.Accept:
		if w.inbound[id] {
			w.t.Fatalf("%s serves two exchanges", id)
		}
		w.inbound[id] = true
		w.queue.After(w.delay(), func() {
			w.tell(a.Peer, averaging.Event{Kind: averaging.Accepted, Peer: id, Exchange: a.Exchange})
		})
		w.queue.After(w.delay()+20*time.Millisecond, func() { w.finish(a.Peer, id, a.Exchange) })
	}
}

func (w *world) finish(active, passive topology.PeerID, id averaging.ExchangeID) {
	mean := (w.values[active] + w.values[passive]) / 2
	w.values[active], w.values[passive] = mean, mean
	w.inbound[passive] = false
	w.done[active]++
	w.done[passive]++
	w.tell(passive, averaging.Event{Kind: averaging.Finished, Peer: active, Exchange: id, Inbound: true})
	w.tell(active, averaging.Event{Kind: averaging.Finished, Peer: passive, Exchange: id})
}

func (w *world) train(id topology.PeerID, period time.Duration) {
	w.queue.After(period, func() {
		w.steps[id]++
		w.tell(id, averaging.Event{Kind: averaging.StepDone})
		w.train(id, period)
	})
}

func newWorld(t *testing.T, n int, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)),
		machines: map[topology.PeerID]*averaging.ADPSGD{}, values: map[topology.PeerID]float64{},
		inbound: map[topology.PeerID]bool{}, done: map[topology.PeerID]int{}, steps: map[topology.PeerID]int{},
	}
	var members []topology.Member
	for i := range n {
		members = append(members, topology.Member{ID: topology.PeerID(fmt.Sprintf("peer%d", i))})
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range members {
		machine, err := averaging.NewADPSGD(averaging.Config{Self: m.ID, Every: 1, Rand: rand.New(rand.NewPCG(seed, uint64(i)))})
		if err != nil {
			t.Fatal(err)
		}
		w.machines[m.ID], w.values[m.ID] = machine, float64(i)
		w.tell(m.ID, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
		w.train(m.ID, time.Duration(8+i%5)*time.Millisecond)
	}
	return w
}

func TestFlockOfMachinesAgrees(t *testing.T) {
	for _, n := range []int{2, 3, 5, 16, 33, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(t, n, 7)
			w.queue.Run(10 * time.Second)
			mean := float64(n-1) / 2
			for id, value := range w.values {
				if w.done[id] == 0 {
					t.Errorf("%s never exchanged", id)
				}
				if d := value - mean; d > 1e-6 || d < -1e-6 {
					t.Errorf("%s is %g from the mean after %d exchanges", id, d, w.done[id])
				}
				if w.steps[id] < 800 {
					t.Errorf("%s took %d steps: a trainer waited", id, w.steps[id])
				}
			}
		})
	}
}
