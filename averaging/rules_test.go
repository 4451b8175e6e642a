package averaging_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

func TestMachineKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &oracle{
			self: "a0", every: rapid.IntRange(1, 3).Draw(t, "every"), maxInbound: rapid.IntRange(1, 3).Draw(t, "inbound"),
			retry: 5 * time.Second, deadline: 3 * time.Second,
		}
		machine, err := averaging.NewADPSGD(averaging.Config{
			Self: o.self, Pace: averaging.Pace{Every: o.every}, MaxInbound: o.maxInbound, RetryAfter: o.retry, Deadline: o.deadline,
			Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		})
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		for i := range rapid.IntRange(30, 80).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
			event := averaging.Event{Kind: averaging.ViewChanged}
			if i > 0 {
				event = drawEvent(t, o)
			} else {
				event.Overlay = drawOverlay(t, o.self)
			}
			if event.Kind == averaging.TimerFired && rapid.Bool().Draw(t, "in time") {
				now = o.due(now)
			}
			next := entry{now: now, event: event}
			next.actions = machine.Handle(now, next.event, nil)
			if err := o.judge(next); err != nil {
				t.Fatalf("at %s, %v → %v: %v", now, next.event, next.actions, err)
			}
			o.history = append(o.history, next)
		}
	})
}

// drawEvent draws an event that a runtime could report, stale ones included.
func drawEvent(t *rapid.T, o *oracle) averaging.Event {
	kind := rapid.SampledFrom([]averaging.EventKind{
		averaging.StepDone, averaging.StepDone, averaging.StepDone, averaging.ViewChanged,
		averaging.Proposed, averaging.Proposed, averaging.Proposed, averaging.Accepted, averaging.Refused, averaging.Refused,
		averaging.Finished, averaging.Failed, averaging.TimerFired, averaging.PeerLost, averaging.Quarantined, averaging.Doubt,
	}).Draw(t, "kind")
	event := averaging.Event{Kind: kind}
	switch kind {
	case averaging.ViewChanged:
		event.Overlay = drawOverlay(t, o.self)
	case averaging.Proposed:
		event.Inbound = true
		event.Peer = drawPeer(t, rapid.SampledFrom([]string{"a", "p"}).Draw(t, "side"), 0)
		event.Exchange = averaging.ExchangeID(len(o.history) - rapid.IntRange(0, 4).Draw(t, "id"))
		event.Incarnation = uint64(rapid.IntRange(0, 9).Draw(t, "life") / 8)
	case averaging.PeerLost:
		event.Peer = drawPeer(t, rapid.SampledFrom([]string{"a", "p"}).Draw(t, "side"), 0)
	case averaging.Quarantined:
		event.Peer = drawPeer(t, rapid.SampledFrom([]string{"a", "p"}).Draw(t, "side"), 0)
		event.After = time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second
	case averaging.Doubt:
		event.Unresolved = rapid.IntRange(0, 4).Draw(t, "unresolved")
	case averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed, averaging.TimerFired:
		return drawWord(t, o, event)
	}
	return event
}

// drawWord draws what is said of an exchange: of the outbound one in flight or the
// last, or of any that was ever accepted.
func drawWord(t *rapid.T, o *oracle, event averaging.Event) averaging.Event {
	var known []averaging.Action
	for _, e := range o.history {
		for _, a := range e.actions {
			if a.Kind == averaging.Accept {
				known = append(known, a)
			}
		}
	}
	outbound := event.Kind == averaging.Accepted || event.Kind == averaging.Refused
	if !outbound && len(known) > 0 && rapid.Bool().Draw(t, "inbound") {
		about := rapid.SampledFrom(known).Draw(t, "about")
		event.Peer, event.Exchange, event.Timer = about.Peer, about.Exchange, averaging.InboundDeadline
		event.Inbound = event.Kind != averaging.TimerFired
		return event
	}
	event.Exchange, event.Peer, _ = o.outbound()
	if event.Peer == "" {
		return averaging.Event{Kind: averaging.StepDone}
	}
	if event.Kind == averaging.Failed {
		event.After = time.Duration(rapid.IntRange(0, 1).Draw(t, "silent"))
	}
	if event.Kind == averaging.Refused {
		event.Reason = rapid.SampledFrom([]averaging.Reason{
			averaging.Busy, averaging.Busy, averaging.WrongRole, averaging.Closing, averaging.Unfit, averaging.Quarantine, averaging.Quarantine,
		}).Draw(t, "reason")
	}
	return event
}

func drawPeer(t *rapid.T, side string, from int) topology.PeerID {
	return topology.PeerID(fmt.Sprintf("%s%d", side, rapid.IntRange(from, 3).Draw(t, "peer")))
}

func drawOverlay(t *rapid.T, self topology.PeerID) *topology.Overlay {
	members := []topology.Member{{ID: self, Role: topology.Active}}
	other := topology.Passive
	if rapid.IntRange(0, 2).Draw(t, "turned") == 0 {
		members[0].Role, other = topology.Passive, topology.Active
	}
	n := rapid.IntRange(1, 4).Draw(t, "partners")
	for i := range n {
		members = append(members, topology.Member{ID: topology.PeerID(fmt.Sprintf("p%d", i)), Role: other})
	}
	for i := 1; i < n; i++ {
		members = append(members, topology.Member{ID: topology.PeerID(fmt.Sprintf("a%d", i)), Role: members[0].Role})
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := topology.NewOverlay(view)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}
