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
// delays every word at random. An exchange averages one number a peer: what it
// changes is computed as it is accepted and applied at both sides as it ends, as
// an exchange of many slices would. The world checks that only actives wait, that
// every proposal is answered at once, and that no peer takes part in more than it may.
type world struct {
	t          *testing.T
	rng        *rand.Rand
	maxInbound int
	queue      sim.Queue
	roles      map[topology.PeerID]topology.Role
	machines   map[topology.PeerID]*averaging.ADPSGD
	values     map[topology.PeerID]float64
	inbound    map[topology.PeerID]int
	overlaps   map[topology.PeerID]int // of the exchange that a peer initiated last
	done       map[topology.PeerID]int
	refusals   map[topology.PeerID]int
	steps      map[topology.PeerID]int
}

// delay is the time of one word on the network.
func (w *world) delay() time.Duration { return time.Duration(1+w.rng.IntN(5)) * time.Millisecond }

func (w *world) tell(id topology.PeerID, event averaging.Event) {
	answered := false
	for _, action := range w.machines[id].Handle(w.queue.Now(), event, nil) {
		answered = answered || action.Kind == averaging.Accept || action.Kind == averaging.Refuse
		w.carryOut(id, action)
	}
	if event.Kind == averaging.Proposed && !answered {
		w.t.Fatalf("%s lets %s wait for an answer", id, event.Peer)
	}
}

func (w *world) carryOut(id topology.PeerID, a averaging.Action) {
	switch a.Kind {
	case averaging.Propose:
		if w.roles[id] != topology.Active || w.inbound[id] > 0 {
			w.t.Fatalf("%s, a %v that serves %d exchanges, waits for %s", id, w.roles[id], w.inbound[id], a.Peer)
		}
		w.overlaps[id] = a.Overlap
		w.queue.After(w.delay(), func() {
			w.tell(a.Peer, averaging.Event{Kind: averaging.Proposed, Peer: id, Exchange: a.Exchange, Inbound: true})
		})
	case averaging.Refuse:
		w.refusals[id]++
		w.queue.After(w.delay(), func() {
			w.tell(a.Peer, averaging.Event{Kind: averaging.Refused, Peer: id, Exchange: a.Exchange, Reason: a.Reason})
		})
	case averaging.Accept:
		w.accept(id, a)
	}
}

func (w *world) accept(id topology.PeerID, a averaging.Action) {
	w.inbound[id]++
	if w.inbound[id] > w.maxInbound || a.Overlap != w.inbound[id] {
		w.t.Fatalf("%s serves %d exchanges: %v", id, w.inbound[id], a)
	}
	d := (w.values[a.Peer] - w.values[id]) / float64(1+max(a.Overlap, w.overlaps[a.Peer]))
	w.queue.After(w.delay(), func() {
		w.tell(a.Peer, averaging.Event{Kind: averaging.Accepted, Peer: id, Exchange: a.Exchange})
	})
	w.queue.After(w.delay()+20*time.Millisecond, func() { w.finish(a.Peer, id, a.Exchange, d) })
}

func (w *world) finish(active, passive topology.PeerID, id averaging.ExchangeID, d float64) {
	w.values[active] -= d
	w.values[passive] += d
	w.inbound[passive]--
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

func newWorld(t *testing.T, n, maxInbound int, seed uint64) *world {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), maxInbound: maxInbound,
		roles: map[topology.PeerID]topology.Role{}, overlaps: map[topology.PeerID]int{}, refusals: map[topology.PeerID]int{},
		machines: map[topology.PeerID]*averaging.ADPSGD{}, values: map[topology.PeerID]float64{},
		inbound: map[topology.PeerID]int{}, done: map[topology.PeerID]int{}, steps: map[topology.PeerID]int{},
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
		machine, err := averaging.NewADPSGD(averaging.Config{
			Self: m.ID, Pace: averaging.Pace{Every: 1}, MaxInbound: maxInbound, Rand: rand.New(rand.NewPCG(seed, uint64(i))),
		})
		if err != nil {
			t.Fatal(err)
		}
		member, _ := overlay.View().Lookup(m.ID)
		w.roles[m.ID] = member.Role
		w.machines[m.ID], w.values[m.ID] = machine, float64(i)
		w.tell(m.ID, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlay})
		w.train(m.ID, time.Duration(8+i%5)*time.Millisecond)
	}
	return w
}

func TestFlockOfMachinesAgrees(t *testing.T) {
	for _, n := range []int{2, 3, 5, 16, 33, 64} {
		for _, maxInbound := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%d peers serve %d", n, maxInbound), func(t *testing.T) {
				w := newWorld(t, n, maxInbound, 7)
				w.queue.Run(10 * time.Second)
				w.check()
			})
		}
	}
}

// check finds peers that are not near the mean, and trainers that have waited.
func (w *world) check() {
	mean := float64(len(w.values)-1) / 2
	refusals := 0
	for id, value := range w.values {
		if w.done[id] == 0 {
			w.t.Errorf("%s never exchanged", id)
		}
		if d := value - mean; d > 1e-6 || d < -1e-6 {
			w.t.Errorf("%s is %g from the mean after %d exchanges", id, d, w.done[id])
		}
		if w.steps[id] < 800 {
			w.t.Errorf("%s took %d steps: a trainer waited", id, w.steps[id])
		}
		refusals += w.refusals[id]
	}
	if len(w.values) > 3 && w.maxInbound == 1 && refusals == 0 {
		w.t.Error("nobody was ever busy: the test shows nothing")
	}
}
