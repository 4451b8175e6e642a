package baseline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// DPSGD is decentralized parallel SGD in lock-step (Lian et al., 2017): the members form a
// ring in the view's order, and after each step all average their models with both neighbours,
// a third each. A member that has made its step tells its neighbours, exchanges with each as
// soon as that one has made its step too, and goes on once both exchanges are over.
//
//   - A neighbour that dies, leaves, or does not come within the deadline is left out of
//     the round; it returns with a new view or with its next message.
//   - An exchange that breaks off counts as over: what was applied stays applied.
//   - Rounds are only counted to tell old messages from new ones. A joiner, or a member that
//     was left out, takes the round of its neighbours; it keeps its own model, which mixes in.
//
// With unequal speeds the whole ring is as slow as its slowest member. It ignores
// Config.Server and Batch.
type DPSGD struct {
	trainer
	round uint64
	whole int     // samples of all members in a round; 0 leaves it to the trainers
	at, n int     // place in the view, and its size
	links [2]link // to the next member, to which this one proposes, and from the one before
}

// link is what is known about a neighbour.
type link struct {
	peer  topology.PeerID // "" if there is none
	round uint64          // of the barrier in its last message
	over  bool            // the exchange of the present round is over
	out   bool            // it is left out until it sends a message, or it leaves
}

// NewDPSGD makes a machine that knows no view yet. It reports all faults of the
// configuration at once.
func NewDPSGD(config Config) (*DPSGD, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("D-PSGD machine: %w", err)
	}
	m := &DPSGD{whole: config.GlobalBatch}
	m.Flights = config.flights()
	return m, nil
}

// Traits implements collective.Machine.
func (m *DPSGD) Traits() collective.Traits {
	return collective.Traits{Algorithm: collective.DPSGD, Messages: true}
}

// Handle implements averaging.Machine.
func (m *DPSGD) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	return collective.Handle(m, now, event, actions)
}

// Decide implements collective.Machine.
func (m *DPSGD) Decide(now time.Duration, event collective.Event, actions []collective.Action) []collective.Action {
	m.Begin(now, actions)
	switch event.Kind {
	case averaging.StepDone:
		m.stepped()
	case collective.GradientDone: // a trainer of gradients: there is nothing to be averaged
		m.Ask(averaging.Proceed)
	case averaging.ViewChanged:
		m.viewed(event.Overlay)
	case averaging.Proposed:
		m.proposed(event)
	case collective.Offered:
		m.Refuse(event, averaging.Unfit)
	case averaging.Refused:
		m.declined(event)
	case averaging.Finished, averaging.Failed:
		m.exchanged(event)
	case averaging.TimerFired:
		if m.Ticked(event) {
			m.retransmit()
		}
	case averaging.PeerLost, averaging.Quarantined:
		m.leaveOut(event.Peer)
	case collective.Received:
		m.receive(event.Peer, event.Message)
	case averaging.RunOver:
		m.over = true
	}
	m.meet()
	m.rest()
	m.Arm(m.waiting || len(m.Out) > 0 || len(m.In) > 0 || m.saying > 0, m.Slice())
	return m.End()
}

// stepped comes to the barrier of the next round, or of a later one if a neighbour waits there.
func (m *DPSGD) stepped() {
	if m.over {
		m.Ask(averaging.Proceed)
		return
	}
	m.waiting, m.since = true, m.Now
	m.round = max(m.round+1, m.links[0].round, m.links[1].round)
	for i := range m.links {
		m.links[i].over = false
		m.tellAt(m.links[i])
	}
}

// tellAt tells a neighbour this peer's round, and whether their exchange is known to be over.
func (m *DPSGD) tellAt(l link) {
	value := 0.0
	if l.over {
		value = 1
	}
	m.Tell(l.peer, message(messageAt, m.round, value))
}

// viewed takes the neighbours of a new view.
func (m *DPSGD) viewed(overlay *topology.Overlay) {
	view := overlay.View()
	n, own := view.Len(), -1
	for i := range n {
		if view.At(i).ID == m.Self {
			own = i
		}
	}
	var peers [2]topology.PeerID
	if own >= 0 && n > 1 {
		peers[0], peers[1] = view.At((own+1)%n).ID, view.At((own+n-1)%n).ID
	}
	m.at, m.n = own, n
	if own >= 0 && n == 2 { // one link; the first in the order proposes
		peers[1-own] = ""
	}
	for i, id := range peers {
		if old := m.links[i]; old.peer != id {
			m.links[i] = link{peer: id}
			if m.waiting {
				m.tellAt(m.links[i])
			}
		}
		m.links[i].out = false
	}
}

// link is the link to a neighbour, nil for other peers.
func (m *DPSGD) link(peer topology.PeerID) *link {
	i := slices.IndexFunc(m.links[:], func(l link) bool { return l.peer == peer })
	if i < 0 {
		return nil
	}
	return &m.links[i]
}

// receive takes a neighbour's round.
func (m *DPSGD) receive(from topology.PeerID, w collective.Message) {
	switch l := m.link(from); {
	case l == nil:
	case w.Kind == messageParting:
		m.leaveOut(from)
	case w.Kind == messageAt:
		l.out = false
		m.noted(l, w)
	}
}

// maxAhead is how many rounds ahead a neighbour may claim to be: more than a run has, so
// that joiners learn their round, but so few that a liar cannot make the count overflow.
const maxAhead = 1 << 32

// noted records a neighbour's round. A neighbour that is further on has had the exchange of
// this round, or does without it.
func (m *DPSGD) noted(l *link, w collective.Message) {
	if w.Round > m.round+maxAhead {
		return
	}
	l.round = max(l.round, w.Round)
	switch {
	case !m.waiting:
	case w.Round > m.round, w.Round == m.round && w.Value > 0:
		l.over = l.over || !m.engaged(l.peer)
	case w.Round < m.round:
		m.tellAt(*l) // so that it can skip the rounds between
	}
}

// engaged tells whether an exchange with a peer is not over.
func (m *DPSGD) engaged(peer topology.PeerID) bool {
	same := func(f collective.Flight) bool { return f.Peer == peer }
	return slices.ContainsFunc(m.Out, same) || slices.ContainsFunc(m.In, same)
}

// degree is the number of exchanges used for the weight of the next one, at least the number
// of neighbours: with two neighbours the weights are a third each, in whichever order.
func (m *DPSGD) degree() int {
	if m.links[0].peer != "" && m.links[1].peer != "" {
		return max(2, len(m.In)+len(m.Out)+1)
	}
	return len(m.In) + len(m.Out) + 1
}

// pending tells whether an exchange is due with a neighbour.
func (m *DPSGD) pending(l link) bool { return l.peer != "" && !l.out && !l.over && !m.over }

// meet proposes to the next member once it is at the same barrier, and lets the trainer
// go on once both exchanges are over.
func (m *DPSGD) meet() {
	if l := m.links[0]; m.waiting && m.pending(l) && l.round == m.round && !m.engaged(l.peer) {
		m.Propose(l.peer, m.degree())
	}
	if !m.busy() && !m.pending(m.links[0]) && !m.pending(m.links[1]) {
		if m.whole > 0 && m.at >= 0 && m.n > 0 {
			m.batch = inTurn(m.whole, m.at, m.n, m.round)
		}
		m.proceed()
	}
}

// busy tells whether an exchange runs.
func (m *DPSGD) busy() bool {
	return len(m.Out) > 0 || slices.ContainsFunc(m.In, func(f collective.Flight) bool { return !f.Aborted })
}

// proposed answers the member before.
func (m *DPSGD) proposed(e collective.Event) {
	l := &m.links[1]
	switch {
	case m.over:
		m.Refuse(e, averaging.Closing)
	case !m.waiting || l.peer != e.Peer || l.over:
		m.Refuse(e, averaging.Round)
	case m.engaged(e.Peer):
		m.Refuse(e, averaging.Busy)
	default:
		l.out = false
		m.Accept(e, m.degree())
	}
}

// declined handles the next member's refusal: it has gone on, and its next message tells
// its round.
func (m *DPSGD) declined(e collective.Event) {
	if _, found := m.Landed(e); !found {
		return
	}
	l := &m.links[0]
	switch {
	case l.peer != e.Peer:
	case e.Reason == averaging.Round || e.Reason == averaging.Busy:
		l.round = 0
		m.tellAt(*l)
	default:
		l.out = true
	}
}

// exchanged handles the end of an exchange, complete or not: the exchange of this round is over.
func (m *DPSGD) exchanged(e collective.Event) {
	f, found := m.Landed(e)
	if !found || f.Aborted || !m.waiting {
		return
	}
	if l := m.link(e.Peer); l != nil {
		l.over = true
		if e.Kind == averaging.Failed {
			m.tellAt(*l) // the other side may not know of the exchange
		}
	}
}

// leaveOut goes on without a neighbour, until it sends a message.
func (m *DPSGD) leaveOut(peer topology.PeerID) {
	m.Abort(peer)
	if l := m.link(peer); l != nil {
		l.out = true
	}
}

// retransmit repeats messages, and goes on without members that would delay the others too
// long.
func (m *DPSGD) retransmit() {
	m.part()
	for _, f := range slices.Concat(m.Out, m.In) {
		if !f.Aborted && m.Now-f.Began >= m.Deadline {
			m.leaveOut(f.Peer)
		}
	}
	if !m.waiting {
		return
	}
	for _, l := range m.links {
		switch {
		case l.peer == "" || l.over || l.out:
		case m.Now-m.since >= m.Deadline && !m.engaged(l.peer):
			m.leaveOut(l.peer)
		default:
			m.tellAt(l)
		}
	}
}

func (m *DPSGD) part() { m.farewell(m.links[0].peer, m.links[1].peer) }

// rest ends this peer's part in the run, once no exchange runs.
func (m *DPSGD) rest() {
	if m.over && !m.waiting && !m.settled && !m.busy() {
		m.settle()
		m.part()
	}
}
