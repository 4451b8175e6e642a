package averaging_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// oracle knows the rules of AD-PSGD and nothing of how the machine keeps them: it
// answers every question by reading the whole history again.
type oracle struct {
	self    topology.PeerID
	every   int
	retry   time.Duration
	history []entry
}

type entry struct {
	now     time.Duration
	event   averaging.Event
	actions []averaging.Action
}

// neighbours are the links and role of the newest view.
func (o *oracle) neighbours() (ids []topology.PeerID, role topology.Role) {
	for _, e := range o.history {
		if e.event.Kind == averaging.ViewChanged {
			ids = e.event.Overlay.Neighbours(o.self)
			member, _ := e.event.Overlay.View().Lookup(o.self)
			role = member.Role
		}
	}
	return ids, role
}

// open is the exchange in flight on one side, if any.
func (o *oracle) open(inbound bool) (id averaging.ExchangeID, peer topology.PeerID, open bool) {
	for _, e := range o.history {
		ended := e.event.Kind == averaging.Refused || e.event.Kind == averaging.Finished || e.event.Kind == averaging.Failed
		if open && ended && e.event.Inbound == inbound && e.event.Exchange == id && e.event.Peer == peer {
			open = false
		}
		for _, a := range e.actions {
			begins := a.Kind == averaging.Propose && !inbound || a.Kind == averaging.Accept && inbound
			switch {
			case begins:
				id, peer, open = a.Exchange, a.Peer, true
			case a.Kind == averaging.Abort && a.Inbound == inbound:
				open = false
			}
		}
	}
	return id, peer, open
}

// barred tells whether a partner is to be passed over now.
func (o *oracle) barred(peer topology.PeerID, now time.Duration) bool {
	barred := false
	for i, e := range o.history {
		before := &oracle{self: o.self, history: o.history[:i]}
		id, partner, running := before.open(false)
		mine := running && partner == peer && e.event.Exchange == id && !e.event.Inbound
		recent := now < e.now+o.retry
		switch e.event.Kind {
		case averaging.ViewChanged:
			barred = false
		case averaging.Failed:
			barred = barred || mine && e.event.Peer == peer && recent
		case averaging.PeerLost:
			barred = barred || e.event.Peer == peer && recent
		case averaging.TimerFired:
			barred = barred || mine && e.event.Timer == averaging.OutboundDeadline && recent
		case averaging.Refused:
			barred = barred || mine && e.event.Peer == peer && (e.event.Reason == averaging.Unfit || e.event.Reason == averaging.Closing && recent)
		}
	}
	return barred
}

// stepsSinceProposal counts the steps after the newest proposal.
func (o *oracle) stepsSinceProposal() int {
	steps := 0
	for _, e := range o.history {
		if e.event.Kind == averaging.StepDone {
			steps++
		}
		for _, a := range e.actions {
			if a.Kind == averaging.Propose {
				steps = 0
			}
		}
	}
	return steps
}

// judge says what is wrong with the answer to the next event.
func (o *oracle) judge(next entry) error {
	kinds := map[averaging.ActionKind][]averaging.Action{}
	for _, a := range next.actions {
		kinds[a.Kind] = append(kinds[a.Kind], a)
	}
	if want := b2i(next.event.Kind == averaging.StepDone); len(kinds[averaging.Proceed]) != want {
		return fmt.Errorf("%d times proceed, want %d", len(kinds[averaging.Proceed]), want)
	}
	if err := o.judgeAnswer(next, kinds); err != nil {
		return err
	}
	return o.judgeProposal(next, kinds[averaging.Propose])
}

func (o *oracle) judgeAnswer(next entry, kinds map[averaging.ActionKind][]averaging.Action) error {
	answers := append(kinds[averaging.Accept], kinds[averaging.Refuse]...)
	if want := b2i(next.event.Kind == averaging.Proposed); len(answers) != want {
		return fmt.Errorf("%d answers, want %d", len(answers), want)
	}
	if len(answers) == 0 {
		return nil
	}
	_, role := o.neighbours()
	_, _, serving := o.open(true)
	if accept := role == topology.Passive && !serving; accept != (answers[0].Kind == averaging.Accept) {
		return fmt.Errorf("%v by a %v that serves another: %v", answers[0], role, serving)
	}
	if answers[0].Peer != next.event.Peer || answers[0].Exchange != next.event.Exchange {
		return fmt.Errorf("%v answers %v", answers[0], next.event)
	}
	return nil
}

func (o *oracle) judgeProposal(next entry, proposals []averaging.Action) error {
	after := &oracle{self: o.self, every: o.every, retry: o.retry, history: append(slices.Clone(o.history), entry{now: next.now, event: next.event})}
	for _, a := range next.actions {
		if a.Kind == averaging.Abort {
			last := &after.history[len(after.history)-1]
			last.actions = append(last.actions, a)
		}
	}
	neighbours, role := after.neighbours()
	_, _, busy := after.open(false)
	willing := slices.ContainsFunc(neighbours, func(id topology.PeerID) bool { return !after.barred(id, next.now) })
	allowed := role == topology.Active && !busy && willing
	if len(proposals) == 0 {
		if allowed && next.event.Kind == averaging.StepDone && after.stepsSinceProposal() >= o.every {
			return fmt.Errorf("no proposal after %d steps", after.stepsSinceProposal())
		}
		return nil
	}
	to := proposals[0].Peer
	switch {
	case len(proposals) > 1:
		return fmt.Errorf("%d proposals at once", len(proposals))
	case !allowed:
		return fmt.Errorf("proposal by a %v, one in flight %v, somebody to ask %v", role, busy, willing)
	case !slices.Contains(neighbours, to):
		return fmt.Errorf("proposal to %s, no neighbour", to)
	case after.barred(to, next.now):
		return fmt.Errorf("proposal to %s, which is passed over", to)
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestMachineKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &oracle{self: "a0", every: rapid.IntRange(1, 3).Draw(t, "every"), retry: 5 * time.Second}
		machine, err := averaging.NewADPSGD(averaging.Config{
			Self: o.self, Every: o.every, RetryAfter: o.retry,
			Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		})
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
			next := entry{now: now, event: drawEvent(t, o)}
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
	id, partner, proposing := o.open(false)
	inID, inPeer, serving := o.open(true)
	kind := rapid.SampledFrom([]averaging.EventKind{
		averaging.StepDone, averaging.StepDone, averaging.StepDone, averaging.ViewChanged, averaging.Proposed, averaging.Proposed,
		averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed, averaging.TimerFired, averaging.PeerLost,
	}).Draw(t, "kind")
	event := averaging.Event{Kind: kind}
	inbound := rapid.Bool().Draw(t, "inbound")
	switch kind {
	case averaging.ViewChanged:
		event.Overlay = drawOverlay(t, o.self)
	case averaging.Proposed:
		event.Inbound = true
		event.Peer = topology.PeerID(fmt.Sprintf("a%d", rapid.IntRange(1, 3).Draw(t, "proposer")))
		event.Exchange = averaging.ExchangeID(len(o.history) + 1)
	case averaging.PeerLost:
		event.Peer = topology.PeerID(fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "lost")))
	case averaging.Accepted, averaging.Refused, averaging.Finished, averaging.Failed, averaging.TimerFired:
		event.Peer, event.Exchange = partner, id
		if kind == averaging.Refused {
			event.Reason = rapid.SampledFrom([]averaging.Reason{averaging.Busy, averaging.WrongRole, averaging.Closing, averaging.Unfit}).Draw(t, "reason")
		}
		if inbound && kind != averaging.Accepted && kind != averaging.Refused {
			event.Peer, event.Exchange, event.Timer = inPeer, inID, averaging.InboundDeadline
			event.Inbound = kind != averaging.TimerFired
		}
		if known := proposing && !event.Inbound || serving && event.Inbound; !known && event.Peer == "" {
			return averaging.Event{Kind: averaging.StepDone}
		}
	}
	return event
}

func drawOverlay(t *rapid.T, self topology.PeerID) *topology.Overlay {
	members := []topology.Member{{ID: self, Role: topology.Active}}
	other := topology.Passive
	if rapid.IntRange(0, 3).Draw(t, "turned") == 0 {
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
