package averaging_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// judge says what is wrong with the answer to the next event.
func (o *oracle) judge(next entry) error {
	kinds := map[averaging.ActionKind][]averaging.Action{}
	for _, a := range next.actions {
		kinds[a.Kind] = append(kinds[a.Kind], a)
	}
	if want := b2i(next.event.Kind == averaging.StepDone); len(kinds[averaging.Proceed]) != want {
		return fmt.Errorf("%d times proceed, want %d", len(kinds[averaging.Proceed]), want)
	}
	for _, judge := range []func(entry, map[averaging.ActionKind][]averaging.Action) error{
		o.judgeAnswer, o.judgeAborts, o.judgeTimer, o.judgeProposal,
	} {
		if err := judge(next, kinds); err != nil {
			return err
		}
	}
	return nil
}

func (o *oracle) judgeAnswer(next entry, kinds map[averaging.ActionKind][]averaging.Action) error {
	answers := append(kinds[averaging.Accept], kinds[averaging.Refuse]...)
	if want := b2i(next.event.Kind == averaging.Proposed); len(answers) != want {
		return fmt.Errorf("%d answers, want %d", len(answers), want)
	}
	if len(answers) == 0 {
		return nil
	}
	want := averaging.Action{Kind: averaging.Refuse, Peer: next.event.Peer, Exchange: next.event.Exchange, Inbound: true}
	want.Reason = o.objection(next)
	if want.Reason == 0 {
		want.Kind, want.Overlap = averaging.Accept, o.overlap()+1
	}
	if answers[0] != want {
		return fmt.Errorf("answer %v, want %v", answers[0], want)
	}
	return nil
}

// objection is the reason for which a proposal must be refused.
func (o *oracle) objection(next entry) averaging.Reason {
	running := 0
	for _, s := range o.inbound() {
		running += b2i(s.running)
		if s.peer == next.event.Peer && (s.running || s.id == next.event.Exchange) {
			running += o.maxInbound
		}
	}
	_, role := o.neighbours()
	switch {
	case o.quarantined(next.event.Peer, next.now):
		return averaging.Quarantine
	case role != topology.Passive:
		return averaging.WrongRole
	case !o.member(next.event.Peer):
		return averaging.NotMember
	case o.proposedBefore(next.event), running >= o.maxInbound, o.unresolved() > 2, o.overlap() >= 6,
		o.stalling(next.event.Peer, next.now), !o.shares().due(next.event.Peer, next.now, o.inAnyCase(next.now)):
		return averaging.Busy
	}
	return 0
}

// judgeAborts wants all that runs with a peer broken off if it is lost, banned or
// stalls, and of inbound exchanges those that have lasted too long.
func (o *oracle) judgeAborts(next entry, kinds map[averaging.ActionKind][]averaging.Action) error {
	id, partner, open := o.outbound()
	var from topology.PeerID
	switch e := next.event; {
	case e.Kind == averaging.PeerLost, e.Kind == averaging.Quarantined:
		from = e.Peer
	case e.Kind == averaging.TimerFired && e.Timer == averaging.OutboundDeadline && open && e.Exchange == id:
		from = partner
	}
	var want []averaging.Action
	if open && partner == from {
		want = append(want, averaging.Action{Kind: averaging.Abort, Peer: partner, Exchange: id})
	}
	late := next.event.Kind == averaging.TimerFired && next.event.Timer == averaging.InboundDeadline
	for _, s := range o.inbound() {
		if s.running && (s.peer == from || late && next.now >= s.due) {
			want = append(want, averaging.Action{Kind: averaging.Abort, Peer: s.peer, Exchange: s.id, Inbound: true})
		}
	}
	if !slices.Equal(kinds[averaging.Abort], want) {
		return fmt.Errorf("breaks off %v, want %v", kinds[averaging.Abort], want)
	}
	return nil
}

// judgeTimer wants the timer set for the inbound exchange that must end first.
func (o *oracle) judgeTimer(next entry, _ map[averaging.ActionKind][]averaging.Action) error {
	after := o.with(next)
	timer, at, set := after.inboundTimer()
	for _, s := range after.inbound() {
		if !s.running {
			continue
		}
		if !set || timer.Peer != s.peer || timer.Exchange != s.id || at < s.due || at > max(s.due, next.now) {
			return fmt.Errorf("timer set %v, for %v at %s; want exchange %d of %s at %s", set, timer, at, s.id, s.peer, s.due)
		}
		return nil
	}
	return nil
}

// with is the oracle after one more entry.
func (o *oracle) with(next entry) *oracle {
	after := *o
	after.history = append(slices.Clone(o.history), next)
	return &after
}

func (o *oracle) judgeProposal(next entry, kinds map[averaging.ActionKind][]averaging.Action) error {
	after := o.with(entry{now: next.now, event: next.event, actions: kinds[averaging.Abort]})
	proposals := kinds[averaging.Propose]
	neighbours, role := after.neighbours()
	_, _, busy := after.outbound()
	willing := slices.ContainsFunc(neighbours, func(id topology.PeerID) bool { return !after.passedOver(id, next.now) })
	allowed := role == topology.Active && !busy && willing
	if len(proposals) == 0 {
		if allowed && next.event.Kind == averaging.StepDone && after.stepsSinceProposal() >= o.every {
			return fmt.Errorf("no proposal after %d steps", after.stepsSinceProposal())
		}
		if other, ok := after.unasked(); allowed && ok {
			return fmt.Errorf("%s is not asked at once", other)
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
	case after.passedOver(to, next.now):
		return fmt.Errorf("proposal to %s, which is passed over", to)
	case (after.slow(to, next.now) || after.silent(to, next.now)) && slices.ContainsFunc(neighbours, func(id topology.PeerID) bool { return after.first(id, next.now) }):
		return fmt.Errorf("proposal to %s, which was slow, before others", to)
	case after.awaits(to, next.now):
		return fmt.Errorf("proposal to %s, the one met last, before others", to)
	case proposals[0].Overlap != after.overlap()+1:
		return fmt.Errorf("overlap %d, want %d", proposals[0].Overlap, after.overlap()+1)
	}
	return nil
}

// unasked finds a partner that must be asked now, since the last event is the
// refusal of another one: it was not asked in this round and neither passed over nor
// slow in any of it, nor had to wait for others as the one met last.
func (o *oracle) unasked() (topology.PeerID, bool) {
	last := len(o.history) - 1
	if o.history[last].event.Kind != averaging.Refused || !o.mine(last) {
		return "", false
	}
	start, _, accepted := o.round()
	if accepted {
		return "", false
	}
	neighbours, _ := o.neighbours()
	for _, id := range neighbours {
		fresh := true
		for i := start; fresh && i <= last; i++ {
			e := o.history[i]
			asked := slices.ContainsFunc(e.actions, func(a averaging.Action) bool { return a.Kind == averaging.Propose && a.Peer == id })
			fresh = !asked && o.at(i+1).first(id, e.now) && !o.at(i+1).awaits(id, e.now)
		}
		if fresh {
			return id, true
		}
	}
	return "", false
}

// round finds where the present round of asking began, which partner was met last,
// and whether the newest proposal was accepted already.
func (o *oracle) round() (start int, met topology.PeerID, accepted bool) {
	for i, e := range o.history {
		proposed := slices.ContainsFunc(e.actions, func(a averaging.Action) bool { return a.Kind == averaging.Propose })
		ended := e.event.Kind == averaging.Accepted || e.event.Kind == averaging.Finished
		switch {
		case e.event.Kind == averaging.ViewChanged, e.event.Kind == averaging.StepDone && proposed:
			start = i
		case ended && o.mine(i):
			start, accepted = i, true
		}
		if e.event.Kind == averaging.Finished && o.mine(i) {
			met = e.event.Peer
		}
		if proposed {
			accepted = false
		}
	}
	return start, met, accepted
}

// due is the moment at which some running inbound exchange must end, or now.
func (o *oracle) due(now time.Duration) time.Duration {
	for _, s := range o.inbound() {
		if s.running {
			return max(now, s.due)
		}
	}
	return now
}
