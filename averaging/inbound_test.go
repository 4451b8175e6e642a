package averaging_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// partners are the actives that newPassive is joined to.
var partners = []topology.PeerID{"b", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "c", "d", "e"}

// newPassive makes the machine of a passive peer "a".
func newPassive(t testing.TB, config averaging.Config) *averaging.ADPSGD {
	t.Helper()
	m := newMachine(t, config)
	m.Handle(0, averaging.Event{Kind: averaging.ViewChanged, Overlay: overlayOf(t, starOf("a", partners))}, nil)
	return m
}

// starOf is a view in which a passive is joined to so many actives.
func starOf(passive topology.PeerID, actives []topology.PeerID) []string {
	members := []string{string(passive) + "=passive"}
	for _, id := range actives {
		members = append(members, string(id)+"=active")
	}
	return members
}

// proposeTo proposes an exchange and gives the answer.
func proposeTo(m *averaging.ADPSGD, now time.Duration, peer topology.PeerID, id averaging.ExchangeID) averaging.Action {
	for _, a := range m.Handle(now, averaging.Event{Kind: averaging.Proposed, Peer: peer, Exchange: id, Inbound: true}, nil) {
		if a.Kind == averaging.Accept || a.Kind == averaging.Refuse {
			return a
		}
	}
	return averaging.Action{}
}

// TestLateWordEndsNoNewerExchange runs a passive under initiators that restart and
// so use their ids again, with a runtime that reports the end of each exchange that
// it accepted once, however late: two are never in flight, and none begins under the
// name of one that is not over.
func TestLateWordEndsNoNewerExchange(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newPassive(t, averaging.Config{Deadline: time.Hour})
		type exchange struct {
			event   averaging.Event
			running bool
		}
		var pending []*exchange
		tell := func(event averaging.Event) {
			for _, a := range m.Handle(0, event, nil) {
				for _, x := range pending {
					same := a.Peer == x.event.Peer && a.Exchange == x.event.Exchange
					if same && a.Kind == averaging.Accept {
						r.Fatalf("%v, while the older of that name is not over", a)
					}
					x.running = x.running && !(same && a.Kind == averaging.Abort)
				}
				if a.Kind == averaging.Accept {
					pending = append(pending, &exchange{averaging.Event{Peer: a.Peer, Exchange: a.Exchange, Inbound: true}, true})
				}
			}
		}
		for life := range 40 {
			peer := topology.PeerID(rapid.SampledFrom([]string{"b", "c"}).Draw(r, "peer"))
			switch what := rapid.IntRange(0, 3).Draw(r, "what"); {
			case what == 0 && len(pending) > 0:
				i := rapid.IntRange(0, len(pending)-1).Draw(r, "ended")
				event := pending[i].event
				event.Kind = rapid.SampledFrom([]averaging.EventKind{averaging.Finished, averaging.Failed}).Draw(r, "how")
				pending = append(pending[:i:i], pending[i+1:]...)
				tell(event)
			case what == 1:
				tell(averaging.Event{Kind: averaging.PeerLost, Peer: peer})
			default:
				tell(averaging.Event{
					Kind: averaging.Proposed, Peer: peer, Inbound: true, Incarnation: uint64(life),
					Exchange: averaging.ExchangeID(rapid.IntRange(1, 2).Draw(r, "id")),
				})
			}
			running := 0
			for _, x := range pending {
				running += b2i(x.running)
			}
			if running > 1 {
				r.Fatalf("%d exchanges in flight", running)
			}
		}
	})
}

// spread is how far a passive and the partners of its exchanges are apart, rounds
// after rounds in which all exchanges are computed from the same values.
func spread(weights []float64, rounds int) float64 {
	values := make([]float64, len(weights)+1) // the passive's first
	values[0] = 1
	for range rounds {
		passive := values[0]
		for i, w := range weights {
			d := w * (values[i+1] - passive)
			values[0] += d
			values[i+1] -= d
		}
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return high - low
}

func TestExchangesAtOnceBringModelsNearer(t *testing.T) {
	m := newPassive(t, averaging.Config{MaxInbound: averaging.MaxOverlap})
	var weights, halves []float64
	for i := 1; ; i++ {
		answer := proposeTo(m, 0, partners[i-1], 1)
		if answer.Kind == averaging.Refuse {
			if answer.Reason != averaging.Busy {
				t.Errorf("%v, want busy", answer)
			}
			break
		}
		if answer.Overlap != i {
			t.Errorf("exchange %d: %v", i, answer)
		}
		weights = append(weights, 1/float64(1+answer.Overlap))
		halves = append(halves, 0.5)
		if s := spread(weights, 1000); s > 1e-6 {
			t.Errorf("%d at once are %g apart after 1000 rounds", i, s)
		}
	}
	if len(weights) != averaging.MaxOverlap {
		t.Fatalf("%d accepted, want %d", len(weights), averaging.MaxOverlap)
	}
	if s := spread(halves[:4], 1000); s < 1e6 {
		t.Errorf("four at half weight are %g apart: expected to diverge", s)
	}
	beyond := append(weights, 1/float64(2+averaging.MaxOverlap))
	if s := spread(beyond, 1000); s < 1 {
		t.Errorf("MaxOverlap could be greater: %d are %g apart", len(beyond), s)
	}
}

func TestBrokenOffExchangesAreBounded(t *testing.T) {
	m := newPassive(t, averaging.Config{})
	for i := range averaging.MaxOverlap {
		if answer := proposeTo(m, 0, partners[i], averaging.ExchangeID(i+1)); answer.Kind != averaging.Accept {
			t.Fatalf("%v after %d that are broken off and not over", answer, i)
		}
		m.Handle(0, averaging.Event{Kind: averaging.PeerLost, Peer: partners[i]}, nil)
	}
	if answer := proposeTo(m, 0, "c", 1); answer.Reason != averaging.Busy {
		t.Errorf("%v, want busy", answer)
	}
	m.Handle(0, averaging.Event{Kind: averaging.Failed, Peer: partners[2], Exchange: 3, Inbound: true}, nil)
	if answer := proposeTo(m, 0, "c", 2); answer.Kind != averaging.Accept {
		t.Errorf("%v, though one is over", answer)
	}
}

func TestServingAllocatesNothing(t *testing.T) {
	m := newPassive(t, averaging.Config{MaxInbound: 3, Deadline: time.Second})
	actions := make([]averaging.Action, 0, 16)
	peers := []topology.PeerID{"b", "c", "d", "e"}
	var now time.Duration
	var id averaging.ExchangeID
	tell := func(event averaging.Event) { actions = m.Handle(now, event, actions[:0]) }
	if n := testing.AllocsPerRun(100, func() {
		id++
		now += 2 * time.Minute
		for _, peer := range peers {
			tell(averaging.Event{Kind: averaging.Proposed, Peer: peer, Exchange: id, Inbound: true})
		}
		tell(averaging.Event{Kind: averaging.Finished, Peer: "b", Exchange: id, Inbound: true})
		tell(averaging.Event{Kind: averaging.Quarantined, Peer: "c", After: time.Minute})
		tell(averaging.Event{Kind: averaging.Failed, Peer: "c", Exchange: id, Inbound: true})
		now += time.Second
		tell(averaging.Event{Kind: averaging.TimerFired, Timer: averaging.InboundDeadline, Peer: "d", Exchange: id})
		tell(averaging.Event{Kind: averaging.Doubt, Unresolved: 1})
		tell(averaging.Event{Kind: averaging.Failed, Peer: "d", Exchange: id, Inbound: true})
		tell(averaging.Event{Kind: averaging.Doubt})
	}); n != 0 {
		t.Errorf("%v allocations for a round of inbound exchanges", n)
	}
}
