package baseline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// DPSGD is decentralized parallel SGD in lock-step (Lian et al., 2017): each round makes
// X·W − γ·G(X) of the members' models X. W follows from the overlay's links, and is symmetric
// and doubly stochastic: in an even ring, a third for each neighbour. A member computes its
// gradient at its own model of the round, and meanwhile exchanges with each neighbour that is
// in the same round; what they add waits until the step is done and all exchanges are over.
//
//   - A neighbour that dies, leaves, or does not come within the deadline is left out of
//     the round; it returns with a new view or with its next message. Its share of W is then
//     this member's own.
//   - An exchange that breaks off counts as over: what was applied stays applied, at both sides.
//   - The first step is a round without exchanges: until then all have the same model.
//   - Rounds are only counted to tell old messages from new ones. A joiner, or a member that
//     was left out, takes the round of its neighbours; it keeps its own model, which mixes in.
//
// With unequal speeds all are as slow as the slowest member. It ignores
// Config.Server and Batch.
type DPSGD struct {
	trainer
	round uint64
	whole int    // samples of all members in a round; 0 leaves it to the trainers
	at, n int    // place in the view, and its size
	links []link // to the neighbours
}

// link is what is known about a neighbour.
type link struct {
	peer     topology.PeerID
	proposes bool   // this peer proposes to it, else it does
	round    uint64 // in its last message
	over     bool   // the exchange of the present round is over
	out      bool   // it is left out until it sends a message, or it leaves
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
	return collective.Traits{Algorithm: collective.DPSGD, Messages: true, Commits: true}
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
	m.Arm(m.waiting || m.pending() || len(m.Out) > 0 || len(m.In) > 0 || m.saying > 0, m.Slice())
	return m.End()
}

// stepped waits for the exchanges of the round.
func (m *DPSGD) stepped() {
	if m.over {
		m.Ask(collective.Commit)
		m.Ask(averaging.Proceed)
		return
	}
	m.waiting, m.since = true, m.Now
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
	m.at, m.n = slices.IndexFunc(view.Members(), func(o topology.Member) bool { return o.ID == m.Self }), view.Len()
	before := m.links
	m.links = nil
	self, _ := view.Lookup(m.Self)
	for _, peer := range overlay.Mutual(m.Self) {
		l := link{peer: peer}
		if i := slices.IndexFunc(before, func(l link) bool { return l.peer == peer }); i >= 0 {
			l = before[i]
		} else if m.round > 0 {
			m.tellAt(l)
		}
		l.proposes, l.out = self.Role == topology.Active, false
		m.links = append(m.links, l)
	}
}

// link is the link to a neighbour, nil for other peers.
func (m *DPSGD) link(peer topology.PeerID) *link {
	i := slices.IndexFunc(m.links, func(l link) bool { return l.peer == peer })
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

// degree makes the weight of an exchange, 1/(1+c) of the larger degree c of its two sides
// (Metropolis weights): W is symmetric, and no row of it exceeds 1.
func (m *DPSGD) degree() int { return max(len(m.links), 1) }

// due tells whether an exchange is due with a neighbour, and pending whether any is.
func (m *DPSGD) due(l link) bool { return m.round > 0 && !l.out && !l.over && !m.over }

func (m *DPSGD) pending() bool { return slices.ContainsFunc(m.links, m.due) }

// meet ends the round, once the step and all exchanges are done, and proposes to the
// neighbours that are in the same one.
func (m *DPSGD) meet() {
	if m.waiting && !m.busy() && !m.pending() {
		m.advance()
	}
	for _, l := range m.links {
		if m.due(l) && l.proposes && l.round == m.round && !m.engaged(l.peer) {
			m.Propose(l.peer, m.degree())
		}
	}
}

// advance begins the next round, or a later one if a neighbour is there.
func (m *DPSGD) advance() {
	m.Ask(collective.Commit)
	m.round++
	for _, l := range m.links {
		m.round = max(m.round, l.round)
	}
	for i := range m.links {
		m.links[i].over = false
		m.tellAt(m.links[i])
	}
	if m.whole > 0 && m.at >= 0 && m.n > 0 {
		m.batch = inTurn(m.whole, m.at, m.n, m.round)
	}
	m.proceed()
}

// busy tells whether an exchange runs.
func (m *DPSGD) busy() bool {
	return len(m.Out) > 0 || slices.ContainsFunc(m.In, func(f collective.Flight) bool { return !f.Aborted })
}

// proposed answers a neighbour.
func (m *DPSGD) proposed(e collective.Event) {
	l := m.link(e.Peer)
	switch {
	case m.over:
		m.Refuse(e, averaging.Closing)
	case l == nil || l.proposes || !m.due(link{over: l.over}):
		m.Refuse(e, averaging.Round)
	case m.engaged(e.Peer):
		m.Refuse(e, averaging.Busy)
	default:
		l.out = false
		m.Accept(e, m.degree())
	}
}

// declined handles a neighbour's refusal: it is in another round, and its next message tells
// which.
func (m *DPSGD) declined(e collective.Event) {
	if _, found := m.Landed(e); !found {
		return
	}
	l := m.link(e.Peer)
	switch {
	case l == nil:
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
	if !found || f.Aborted {
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
	for _, l := range m.links {
		switch {
		case !m.due(l):
		case m.waiting && m.Now-m.since >= m.Deadline && !m.engaged(l.peer):
			m.leaveOut(l.peer)
		default:
			m.tellAt(l)
		}
	}
}

func (m *DPSGD) part() {
	peers := make([]topology.PeerID, len(m.links))
	for i, l := range m.links {
		peers[i] = l.peer
	}
	m.farewell(peers...)
}

// rest ends this peer's part in the run, once no exchange runs.
func (m *DPSGD) rest() {
	if m.over && !m.waiting && !m.settled && !m.busy() {
		m.Ask(collective.Commit)
		m.settle()
		m.part()
	}
}
