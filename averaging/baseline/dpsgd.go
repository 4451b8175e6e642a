package baseline

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// DPSGD is decentralized parallel SGD in lock-step (Lian et al., 2017): the members stand
// in a ring in the view's order, and after each step all average their models with both
// neighbours, a third each. Who has made its step tells its neighbours, and exchanges with
// each as soon as that one has too; with both exchanges over it goes on.
//
//   - A neighbour that dies, parts, or is not there within the deadline is left out of the
//     round; who it was comes again with a view or with its next word.
//   - An exchange that breaks off counts as over: what was applied stays applied.
//   - Rounds are only counted to tell old words from new ones. A newcomer, or who was left
//     out, takes the number of its neighbours; its model is its own, and mixes in.
//
// With unequal speeds the whole ring is as slow as its slowest member. With Config.Parts,
// Server and Batch it does nothing.
type DPSGD struct {
	core
	round   uint64
	links   [2]link // to the next member, to which this one proposes, and from the one before
	since   time.Duration
	parting int // farewells still to be said
}

// link is what is known of a neighbour.
type link struct {
	peer  topology.PeerID // "" if there is none
	round uint64          // at whose barrier it is or was, as it said last
	over  bool            // the exchange of the present round is
	out   bool            // it is left out until it speaks, or parts
}

// NewDPSGD makes a machine that knows no view yet. It reports all faults of the
// configuration at once.
func NewDPSGD(config Config) (*DPSGD, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("D-PSGD machine: %w", err)
	}
	m := &DPSGD{}
	m.config = config.withDefaults()
	return m, nil
}

// Handle implements averaging.Machine.
func (m *DPSGD) Handle(now time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	m.begin(now, actions)
	switch event.Kind {
	case averaging.StepDone:
		m.stepped()
	case averaging.GradientDone: // a trainer of gradients: there is nothing to be averaged
		m.do(averaging.Action{Kind: averaging.Proceed})
	case averaging.ViewChanged:
		m.viewed(event.Overlay)
	case averaging.Proposed:
		m.proposed(event)
	case averaging.Offered:
		m.refuse(event, averaging.Unfit)
	case averaging.Refused:
		m.declined(event)
	case averaging.Finished, averaging.Failed:
		m.exchanged(event)
	case averaging.TimerFired:
		if m.ticked(event) {
			m.impatient()
		}
	case averaging.PeerLost, averaging.Quarantined:
		m.leaveOut(event.Peer)
	case averaging.Told:
		m.told(event.Peer, event.Word)
	case averaging.RunOver:
		m.over = true
	}
	m.meet()
	m.part()
	m.arm(m.waiting || len(m.out) > 0 || len(m.in) > 0 || m.parting > 0, m.config.slice())
	return m.end()
}

// stepped comes to the barrier.
func (m *DPSGD) stepped() {
	if m.over {
		m.do(averaging.Action{Kind: averaging.Proceed})
		return
	}
	m.waiting, m.since = true, m.now
	m.enter(m.round + 1)
}

// enter is at the barrier of a round, or of a later one if a neighbour waits there.
func (m *DPSGD) enter(round uint64) {
	for _, l := range m.links {
		round = max(round, l.round)
	}
	m.round = round
	for i := range m.links {
		m.links[i].over = false
	}
	m.sayAt()
}

// sayAt tells the neighbours where this peer is, and what it knows to be over.
func (m *DPSGD) sayAt() {
	for _, l := range m.links {
		m.tellAt(l)
	}
}

func (m *DPSGD) tellAt(l link) {
	value := 0.0
	if l.over {
		value = 1
	}
	m.tell(l.peer, word(wordAt, m.round, 0, value))
}

// viewed takes the neighbours of a new view.
func (m *DPSGD) viewed(overlay *topology.Overlay) {
	view := overlay.View()
	n, own := view.Len(), -1
	for i := range n {
		if view.At(i).ID == m.config.Self {
			own = i
		}
	}
	var peers [2]topology.PeerID
	if own >= 0 && n > 1 {
		peers[0], peers[1] = view.At((own+1)%n).ID, view.At((own+n-1)%n).ID
	}
	if own >= 0 && n == 2 { // one link, on which the first in the order proposes
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

// told hears where a neighbour is.
func (m *DPSGD) told(from topology.PeerID, w averaging.Word) {
	for i := range m.links {
		l := &m.links[i]
		if l.peer != from {
			continue
		}
		switch w.Kind {
		case wordGone:
			m.leaveOut(from)
		case wordAt:
			l.out = false
			m.heard(l, w)
		}
	}
}

// maxAhead is how many rounds a neighbour may say that it is ahead: more than a run has, so
// that newcomers are told theirs, and so few that a liar cannot bring the count to its end.
const maxAhead = 1 << 32

// heard is where a neighbour is. One that is further on has had the exchange of this
// round, or does without.
func (m *DPSGD) heard(l *link, w averaging.Word) {
	if w.Round > m.round+maxAhead {
		return
	}
	l.round = max(l.round, w.Round)
	switch {
	case !m.waiting:
	case w.Round > m.round, w.Round == m.round && w.Value > 0:
		l.over = l.over || !m.engaged(l.peer)
	case w.Round < m.round:
		m.tellAt(*l) // it need not come through all the rounds between
	}
}

// engaged tells whether an exchange with a peer is not over.
func (m *DPSGD) engaged(peer topology.PeerID) bool {
	same := func(f flight) bool { return f.peer == peer }
	return slices.ContainsFunc(m.out, same) || slices.ContainsFunc(m.in, same)
}
