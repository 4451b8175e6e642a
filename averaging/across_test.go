package averaging

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

// sited drives the machine of one of 16 members at two sites.
type sited struct {
	t       *testing.T
	m       *ADPSGD
	overlay *topology.Overlay
	now     time.Duration
}

// delegates are the two members whose link is across, the active one first.
func (s *sited) delegates() topology.Edge {
	for e := range s.overlay.Edges() {
		if s.overlay.Apart(e.Active, e.Passive) {
			return e
		}
	}
	s.t.Fatal("no link is across")
	return topology.Edge{}
}

// newSited makes the machine of one of the delegates.
func newSited(t *testing.T, pace Pace, of func(topology.Edge) topology.PeerID) *sited {
	t.Helper()
	var members []topology.Member
	for i := range 16 {
		members = append(members, topology.Member{ID: topology.PeerID(fmt.Sprint("p", i)), Place: topology.Place{Site: fmt.Sprint(i % 2)}})
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	s := &sited{t: t}
	if s.overlay, err = topology.NewOverlay(view); err != nil {
		t.Fatal(err)
	}
	if s.m, err = NewADPSGD(Config{Self: of(s.delegates()), Rand: rand.New(rand.NewPCG(1, 1)), Pace: pace}); err != nil {
		t.Fatal(err)
	}
	s.tell(Event{Kind: ViewChanged, Overlay: s.overlay})
	return s
}

// tell returns the actions of an event but Proceed.
func (s *sited) tell(e Event) (actions []Action) {
	s.now += 10 * time.Millisecond
	for _, a := range s.m.Handle(s.now, e, nil) {
		if a.Kind != Proceed {
			actions = append(actions, a)
		}
	}
	return actions
}

// proposals are the exchanges that actions propose, inside and across.
func proposals(actions []Action) (inside, across []Action) {
	for _, a := range actions {
		switch {
		case a.Kind == Propose && a.Across > 0:
			across = append(across, a)
		case a.Kind == Propose:
			inside = append(inside, a)
		}
	}
	return inside, across
}

// finish completes an exchange at a distance.
func (s *sited) finish(a Action, distance float64) []Action {
	s.tell(Event{Kind: Accepted, Peer: a.Peer, Exchange: a.Exchange})
	return s.tell(Event{Kind: Finished, Peer: a.Peer, Exchange: a.Exchange, Distance: distance})
}

func active(e topology.Edge) topology.PeerID  { return e.Active }
func passive(e topology.Edge) topology.PeerID { return e.Passive }

// TestExchangesAcrossHoldUpNoneInside: while an exchange across lasts, an active delegate makes those inside its site as
// before, and the next across follows no sooner than four exchanges inside, nor before it has lasted for 0.3 of the time.
func TestExchangesAcrossHoldUpNoneInside(t *testing.T) {
	const step = 10 * time.Millisecond
	for _, lasts := range []time.Duration{step / 2, 20 * step} {
		s := newSited(t, Pace{Every: 2}, active)
		var inside, across, since int
		var far Action
		began := time.Duration(0)
		for range 400 {
			s.now = s.now.Truncate(step)
			near, beyond := proposals(s.tell(Event{Kind: StepDone}))
			for _, a := range beyond {
				if a.Peer != s.delegates().Passive || a.View != s.overlay.View().Digest() {
					t.Fatalf("%v", a)
				}
				if across > 1 && (float64(s.now-began) < float64(lasts)/acrossShare || since < 4) {
					t.Errorf("an exchange that lasts %s begins %s after the last, and %d inside", lasts, s.now-began, since)
				}
				far, across, since, began = a, across+1, 0, s.now
				for _, x := range []TimerKind{AcrossOutbound, OutboundDeadline} { // of other exchanges
					s.m.Handle(s.now, Event{Kind: TimerFired, Timer: x, Exchange: 999}, nil)
				}
			}
			for _, a := range near {
				if s.overlay.Apart(s.m.config.Self, a.Peer) || a.View != 0 {
					t.Fatalf("%v", a)
				}
				inside, since = inside+1, since+1
				s.m.Handle(s.now, Event{Kind: Accepted, Peer: a.Peer, Exchange: a.Exchange}, nil)
				s.m.Handle(s.now, Event{Kind: Finished, Peer: a.Peer, Exchange: a.Exchange, Distance: 1}, nil)
			}
			if far.Peer != "" && s.now-began >= lasts-step/2 {
				s.m.Handle(s.now, Event{Kind: Accepted, Peer: far.Peer, Exchange: far.Exchange}, nil)
				s.m.Handle(began+lasts, Event{Kind: Finished, Peer: far.Peer, Exchange: far.Exchange, Distance: 10}, nil)
				far = Action{}
			}
		}
		if inside < 190 || across < 5 {
			t.Errorf("%d exchanges inside and %d across in 400 steps, two for each inside", inside, across)
		}
	}
}

// TestAPassiveDelegateServesBoth: an exchange across takes no place from those inside its site, nor the other way round, and
// weighs for all at both sites where delegates differ as sites do.
func TestAPassiveDelegateServesBoth(t *testing.T) {
	s := newSited(t, Pace{Every: 1}, passive)
	ask := func(peer topology.PeerID, id ExchangeID) Action {
		for _, a := range s.tell(Event{Kind: Proposed, Peer: peer, Exchange: id, Inbound: true}) {
			if a.Kind == Accept || a.Kind == Refuse {
				return a
			}
		}
		t.Fatal("no answer")
		return Action{}
	}
	near, far := s.overlay.Neighbours(s.m.config.Self)[0], s.delegates().Active
	first := ask(far, 1)
	if inside := ask(near, 1); first.Kind != Accept || inside.Kind != Accept || inside.Overlap != 2 || inside.Across != 0 {
		t.Fatalf("%v, %v", first, inside)
	}
	if first.Across != acrossMost || first.Overlap != 4 || first.View != s.overlay.View().Digest() {
		t.Errorf("before it is known how far apart models are: %v; it should weigh half", first)
	}
	if again := ask(far, 2); again.Kind != Refuse || again.Reason != Busy {
		t.Errorf("a second one across: %v", again)
	}
	s.tell(Event{Kind: Finished, Peer: near, Exchange: 1, Inbound: true, Distance: 1})
	s.tell(Event{Kind: Finished, Peer: far, Exchange: 1, Inbound: true, Distance: 10})
	s.now += time.Minute
	if second := ask(far, 3); second.Kind != Accept || second.Overlap != 1 {
		t.Errorf("where delegates of sites are far more apart than members of one: %v; it should weigh all", second)
	}
}

// TestADelegateParts: after the run each partner is asked once, at the other site too, and when all that is over, nothing is
// left, once.
func TestADelegateParts(t *testing.T) {
	s := newSited(t, Pace{Every: 1}, active)
	asked := map[topology.PeerID]int{}
	queue := s.tell(Event{Kind: RunOver})
	for len(queue) > 0 {
		if slices.ContainsFunc(queue, func(a Action) bool { return a.Kind == Settled }) {
			t.Fatalf("%v, and there are exchanges under way", queue)
		}
		near, far := proposals(queue) // those across last longest
		next := append(far, near...)
		last := len(next) - 1
		if last < 0 {
			break
		}
		a := next[last]
		asked[a.Peer]++
		more := s.finish(a, 1)
		if queue = append(next[:last:last], more...); last == 0 && len(more) == 1 && more[0].Kind == Settled {
			queue = nil
			asked["settled"]++
		}
	}
	for _, id := range append(s.overlay.Neighbours(s.m.config.Self), "settled") {
		if asked[id] != 1 {
			t.Errorf("%s: %d times", id, asked[id])
		}
	}
}

// TestDelegatesShareTheBytes: a budget of bytes is for both kinds of exchanges together.
func TestDelegatesShareTheBytes(t *testing.T) {
	s := newSited(t, Pace{Every: 1, BytesPerHour: 1000}, active)
	if got := s.m.inside.config.Pace.BytesPerHour + s.m.across.config.Pace.BytesPerHour; got != 1000 {
		t.Errorf("%g bytes an hour", got)
	}
	view, _ := topology.NewView([]topology.Member{{ID: s.m.config.Self, Role: topology.Active}, {ID: "other"}})
	overlay, _ := topology.NewOverlay(view)
	if s.tell(Event{Kind: ViewChanged, Overlay: overlay}); s.m.inside.config.Pace.BytesPerHour != 1000 {
		t.Errorf("%g bytes an hour without other sites", s.m.inside.config.Pace.BytesPerHour)
	}
}

// TestWeightsAcrossAreBounded: whatever distances are told, an exchange across weighs between as much as one inside and as
// its sites have members for.
func TestWeightsAcrossAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times, overlap := rapid.Float64Range(1, 100).Draw(t, "times"), rapid.IntRange(1, MaxOverlap).Draw(t, "overlap")
		told := spread(times, overlap, rapid.Float64Min(0).Draw(t, "here"), rapid.Float64Min(0).Draw(t, "there"))
		weight, plain := times/float64(1+told), 1/float64(1+overlap)
		if told < overlap || weight < plain*(1-1e-9) || weight > times*plain*(1+1e-9) {
			t.Fatalf("an overlap of %d is told as %d: weight %g, plain %g", overlap, told, weight, plain)
		}
	})
}

// answered is what a machine answers a proposal.
func (s *sited) answered(peer topology.PeerID, id ExchangeID) (a Action) {
	for _, a = range s.tell(Event{Kind: Proposed, Peer: peer, Exchange: id, Inbound: true}) {
		if a.Kind == Accept || a.Kind == Refuse {
			return a
		}
	}
	s.t.Fatal("no answer")
	return a
}

// moves has a member say that it is at a site.
func (s *sited) moves(id topology.PeerID, site string) {
	members := s.overlay.View().Members()
	for i := range members {
		if members[i].ID == id {
			members[i].Place.Site = site
		}
	}
	view, err := topology.NewView(members)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.overlay, err = topology.NewOverlay(view); err != nil {
		s.t.Fatal(err)
	}
	s.tell(Event{Kind: ViewChanged, Overlay: s.overlay})
}

// TestAMemberThatMovesIsTheSame: who says that it is at another site has no second exchange beside the one under way, and
// none of a number that it has had, wherever it was then.
func TestAMemberThatMovesIsTheSame(t *testing.T) {
	s := newSited(t, Pace{Every: 1}, passive)
	self, _ := s.overlay.View().Lookup(s.m.config.Self)
	var near topology.PeerID
	for _, id := range s.overlay.Neighbours(self.ID) {
		if !s.overlay.Apart(self.ID, id) {
			near = id
		}
	}
	if a := s.answered(near, 7); a.Kind != Accept {
		t.Fatalf("%v", a)
	}
	s.moves(near, "elsewhere")
	s.moves(near, string('1'-(self.Place.Site[0]-'0')))
	if !s.overlay.Apart(self.ID, near) {
		t.Fatal("it has not moved")
	}
	if a := s.answered(near, 8); a.Kind != Refuse {
		t.Errorf("a second exchange while the first lasts: %v", a)
	}
	s.tell(Event{Kind: Finished, Peer: near, Exchange: 7, Inbound: true, Distance: 1})
	s.now += time.Minute
	for _, id := range []ExchangeID{7, 8} {
		if a := s.answered(near, id); a.Kind != Refuse {
			t.Errorf("exchange %d, which it has proposed before: %v", id, a)
		}
	}
	if a := s.answered(near, 9); a.Kind != Accept {
		t.Errorf("a new one: %v", a)
	}
}

// TestOnlyDelegatesSpeakForTheirSites: a member of another site that is no partner is served as one of this peer's own site is.
func TestOnlyDelegatesSpeakForTheirSites(t *testing.T) {
	s := newSited(t, Pace{Every: 1}, passive)
	for _, m := range s.overlay.View().Members() {
		if m.Role != topology.Active || !s.overlay.Apart(m.ID, s.m.config.Self) || m.ID == s.delegates().Active {
			continue
		}
		if a := s.answered(m.ID, 1); a.Kind != Accept || a.Across != 0 || a.Overlap != 1 {
			t.Errorf("of %s: %v", m.ID, a)
		}
		break
	}
}

// TestDriftInsideSetsThePaceAcross: where the way of models decides when peers of a site exchange, as many of these exchanges
// lie between two across as otherwise, not as many as if the models had not moved.
func TestDriftInsideSetsThePaceAcross(t *testing.T) {
	s := newSited(t, Pace{Drift: 1}, active)
	var inside, across int
	for range 200 {
		near, far := proposals(s.tell(Event{Kind: StepDone, Moved: 2}))
		inside, across = inside+len(near), across+len(far)
		for _, a := range append(near, far...) {
			s.finish(a, 1)
		}
	}
	if inside < 190 || across < 30 || across > inside/4+1 {
		t.Errorf("%d exchanges inside and %d across", inside, across)
	}
}
