package averaging

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// neighbourhood is the part of an AD-PSGD machine that deals with some of its links: those inside its site, or
// those across. As an active it initiates one exchange at a time, every H local steps, taking its links in
// cyclic order; as a passive it serves Config.MaxInbound at a time and refuses others at once.
type neighbourhood struct {
	across     bool
	beside     *neighbourhood // the other one of the machine
	timers     struct{ outbound, inbound TimerKind }
	lastID     *ExchangeID // of the machine
	config     Config
	role       topology.Role
	partners   []partner // in link order
	cursor     int       // index of the partner to ask next
	tries      int       // partners asked in this round
	owed       bool      // a round has begun in which nobody has accepted yet
	steps      int       // local steps since the last round began
	apart      mean      // steps from one round to the next
	follow     int       // exchanges of the present burst that follow at once
	rounds     int       // of exchanges at this site between two across
	out        exchange
	in         inbound
	overlay    *topology.Overlay
	accounts   accounts
	unresolved int             // exchanges in doubt
	quarantine bans            // peers that this one keeps away from
	shunned    bans            // peers that keep away from this one
	failing    bans            // members with whom exchanges have failed
	slow       bans            // of these, members that are asked after others
	silent     bans            // of these, members that have sent nothing since, and how often
	refusing   bans            // partners that refuse, until the moment given
	stalling   bans            // proposers that have held a place for nothing
	met        topology.PeerID // the partner of the last outbound exchange completed
	pace       pace
	squared    mean // distances of partners' models, squared
	over       bool
	parting    int // partners still to be asked after the run is over
	settled    bool
}

// every is the present H.
func (m *neighbourhood) every() int {
	c := m.config.Pace
	every := min(c.Every, math.MaxInt32) // so that no multiple of it overflows
	switch {
	case c.Drift > 0:
		every = maxEvery
	case every == 0:
		every = m.pace.every(c.Partial)
	case c.BySpeed:
		every = m.pace.scaled(every)
	}
	if c.Consensus && c.Drift == 0 {
		every = m.controlled(every)
	}
	if m.across {
		every = max(every, m.pace.sharing(), m.rounds*m.beside.usual())
	}
	return max(every, m.pace.affordable(c.BytesPerHour))
}

// usual is how many steps lie between two rounds as a rule: H, unless the way of the model decides.
func (m *neighbourhood) usual() int {
	if m.config.Pace.Drift == 0 || !m.apart.known {
		return m.every()
	}
	return int(math.Ceil(m.apart.value))
}

// controlled is H as scaled by the consensus controller, but not below what the link
// allows, if the link decides.
func (m *neighbourhood) controlled(every int) int {
	c := m.config.Pace
	least := 1
	if c.Every == 0 {
		least = every
	}
	return min(max(int(math.Round(float64(every)*m.pace.control.scale())), least), max(maxEvery, every))
}

// handle does what an event asks of this part of the machine.
func (m *neighbourhood) handle(now time.Duration, event Event, actions []Action) []Action {
	switch event.Kind {
	case StepDone:
		m.steps++
		m.accounts.stepped(m.every())
		m.pace.stepped(now, event.Between)
		m.pace.moved, m.pace.speed = event.Moved, event.Speed
		m.pace.control.stepped(event.Stride, event.Progress)
	case ViewChanged:
		m.adopt(event.Overlay)
	case Proposed:
		actions = m.answer(now, event, actions)
	case Accepted:
		if m.out.is(event) {
			m.out.carried = true
			m.owed, m.tries = false, 0
		}
	case Refused:
		m.refused(now, event)
	case Finished:
		m.finished(now, event)
	case Failed:
		m.failed(now, event)
	case TimerFired:
		actions = m.expired(now, event, actions)
	case PeerLost:
		actions = m.lost(now, event.Peer, actions)
	case RunOver:
		m.depart()
	case Quarantined:
		m.quarantine.hold(event.Peer, later(now, event.After))
		actions = m.breakOff(now, event.Peer, actions)
	case Doubt:
		m.unresolved = max(event.Unresolved, 0)
	}
	actions = m.in.arm(now, m.config.Deadline, m.timers.inbound, actions)
	return m.initiate(now, actions)
}

// adopt takes the links of a new view. An exchange in flight goes on: the stream shows
// sooner than gossip whether its partner is alive.
func (m *neighbourhood) adopt(overlay *topology.Overlay) {
	m.overlay = overlay
	self, _ := overlay.View().Lookup(m.config.Self)
	m.role = self.Role
	m.rounds = rounds(overlay.AtSiteOf(m.config.Self))
	m.partners = m.partners[:0]
	for _, id := range overlay.Neighbours(m.config.Self) {
		if overlay.Apart(m.config.Self, id) == m.across {
			m.partners = append(m.partners, partner{id: id})
		}
	}
	m.accounts.link(m.partners, overlay.View().Actives())
	m.tries, m.cursor = 0, 0
	for _, known := range []*bans{&m.failing, &m.slow, &m.silent, &m.refusing} {
		known.retain(overlay.View().Has)
	}
	switch {
	case m.config.Pace.burst() > 1:
		m.partners = inBurst(m.partners)
	case len(m.partners) > 0:
		m.cursor = m.config.Rand.IntN(len(m.partners))
	}
	if m.over {
		m.parting = min(m.parting, len(m.partners))
	}
}

func (m *neighbourhood) refused(now time.Duration, event Event) {
	if !m.out.is(event) {
		return
	}
	m.out = exchange{}
	if m.refusing.index(event.Peer) < 0 {
		m.refusing.hold(event.Peer, now)
	}
	switch event.Reason {
	case Unfit:
		m.bar(event.Peer, forever)
	case Closing:
		m.bar(event.Peer, later(now, m.config.RetryAfter))
	case Quarantine:
		m.shunned.hold(event.Peer, later(now, grown(m.config.RetryAfter, m.shunned.times(event.Peer))))
	}
}

func (m *neighbourhood) finished(now time.Duration, event Event) {
	switch {
	case event.Inbound:
		if !m.ended(now, event) {
			return
		}
	case m.out.is(event):
		m.pace.control.exchanged(event.Distance, m.every())
		m.pace.exchanged(now-m.out.began, event.Cost, event.Bytes)
		m.out, m.owed, m.tries, m.met = exchange{}, false, 0, event.Peer
	default:
		return
	}
	if d := event.Distance; d >= 0 && d <= math.MaxFloat32 {
		m.squared.add(d * d)
	}
	for _, known := range []*bans{&m.shunned, &m.failing, &m.slow, &m.silent, &m.refusing} {
		known.lift(event.Peer)
	}
}

func (m *neighbourhood) failed(now time.Duration, event Event) {
	switch {
	case event.Inbound:
		m.ended(now, event)
	case m.out.is(event):
		m.passOver(now, event.Peer)
		if event.After > 0 {
			pause := stallPause(forever, maxSlowCost, m.config.RetryAfter)
			m.slow.hold(event.Peer, later(now, grown(pause, min(m.silent.times(event.Peer), maxSilentDoublings))))
			m.silent.hold(event.Peer, now)
		} else if m.out.carried {
			m.silent.lift(event.Peer)
		}
		m.drop(now)
	}
}

func (m *neighbourhood) expired(now time.Duration, event Event, actions []Action) []Action {
	switch event.Timer {
	case m.timers.outbound:
		if m.out.running && m.out.id == event.Exchange {
			return m.lost(now, m.out.peer, actions)
		}
	case m.timers.inbound:
		return m.in.expire(now, m.config.Deadline, event, actions)
	}
	return actions
}

// lost breaks off whatever runs with a peer and passes it over for a while.
func (m *neighbourhood) lost(now time.Duration, peer topology.PeerID, actions []Action) []Action {
	m.passOver(now, peer)
	return m.breakOff(now, peer, actions)
}

// passOver passes over a peer that has failed, for longer with each failure since the last
// completed exchange. A change of the view does not end that, since in a large flock the
// view changes all the time. If the peer kept an exchange waiting, others are asked before
// it for several times as long.
func (m *neighbourhood) passOver(now time.Duration, peer topology.PeerID) {
	before := min(m.failing.times(peer), maxRetryDoublings)
	m.failing.hold(peer, later(now, grown(m.config.RetryAfter, before)))
	if m.out.running && m.out.peer == peer {
		m.slow.hold(peer, later(now, stallPause(now-m.out.began, maxSlowCost, m.config.RetryAfter)))
	}
}

// breakOff breaks off whatever runs with a peer.
func (m *neighbourhood) breakOff(now time.Duration, peer topology.PeerID, actions []Action) []Action {
	if m.out.running && m.out.peer == peer {
		actions = append(actions, Action{Kind: Abort, Peer: peer, Exchange: m.out.id})
		m.drop(now)
	}
	return m.in.breakOff(peer, actions)
}

// drop gives the outbound exchange up. If the partner never accepted it, it is no measure
// of how long an exchange takes.
func (m *neighbourhood) drop(now time.Duration) {
	if m.out.carried {
		m.pace.brokeOff(now - m.out.began)
	}
	m.out = exchange{}
}

func (m *neighbourhood) bar(peer topology.PeerID, until time.Duration) {
	for i := range m.partners {
		if m.partners[i].id == peer {
			m.partners[i].barredUntil = max(m.partners[i].barredUntil, until)
		}
	}
}

// initiate proposes the next exchange if one is due, or settles when none will follow. It
// runs after every event, so that a partner's refusal is followed by a proposal to the next
// at once.
func (m *neighbourhood) initiate(now time.Duration, actions []Action) []Action {
	if m.out.running || m.settled {
		return actions
	}
	for m.due() {
		next := m.take()
		if !m.passedOver(next, now) && !m.stale(next, now) {
			return m.propose(now, next.id, actions)
		}
	}
	m.settled = m.over // nothing more will be initiated
	return actions
}

// due tells whether this peer should have an exchange in flight: it is active,
// has somebody left to ask, and its H steps are done or it is parting.
func (m *neighbourhood) due() bool {
	if m.role != topology.Active || len(m.partners) == 0 {
		return false
	}
	if m.over {
		return m.parting > 0
	}
	if !m.owed && m.follow == 0 && m.steps < m.every()*m.config.Pace.burst() && !m.drifted() {
		return false
	}
	if m.tries == len(m.partners) {
		m.endRound()
		return false
	}
	return true
}

// drifted tells whether the model has moved so far that an exchange pays before H
// steps are done.
func (m *neighbourhood) drifted() bool {
	c := m.config.Pace
	return c.Drift > 0 && m.pace.moved > c.Drift && m.steps >= max(1, m.pace.affordable(c.BytesPerHour))
}

// take moves on to the next partner of the cycle.
func (m *neighbourhood) take() partner {
	if m.config.Pace.burst() > 1 && m.follow == 0 && m.tries == 0 && !m.owed && !m.over {
		m.cursor = 0 // where a burst begins
	}
	next := m.partners[m.cursor]
	m.cursor = (m.cursor + 1) % len(m.partners)
	m.tries++
	if m.over {
		m.parting--
	}
	return next
}

// passedOver tells whether a partner is not to be asked at this moment.
func (m *neighbourhood) passedOver(p partner, now time.Duration) bool {
	return now < p.barredUntil || m.failing.holds(p.id, now) || m.quarantine.holds(p.id, now) || m.shunned.holds(p.id, now)
}

// stale tells whether other partners, if they can be asked, come before this one. That holds for the
// partner of the last exchange, unless the others stay busy for much longer than exchanges take: the two
// models hardly differ, and choosing it again whenever the next is busy would split flocks that move in
// step into pairs that never mix. It also holds for a partner that has kept this peer waiting in vain.
func (m *neighbourhood) stale(p partner, now time.Duration) bool {
	slow, usual := m.slow.holds(p.id, now), time.Duration(tooLong*m.pace.exchange.value)
	if m.over || p.id != m.met && !slow {
		return false
	}
	for _, other := range m.partners {
		i := m.refusing.index(other.id)
		free := i < 0 || now-m.refusing[i].until <= usual
		if other.id != p.id && (slow || free) && !m.passedOver(other, now) && !m.slow.holds(other.id, now) {
			return true
		}
	}
	return false
}

func (m *neighbourhood) propose(now time.Duration, to topology.PeerID, actions []Action) []Action {
	*m.lastID++
	m.out = exchange{id: *m.lastID, peer: to, began: now, running: true}
	if !m.owed && !m.over { // else another partner has refused this exchange, or bursts are over
		if m.follow--; m.follow < 0 { // it is the first of a burst
			m.follow = m.config.Pace.burst() - 1
		}
		m.apart.add(float64(m.steps))
	}
	m.owed, m.steps = true, 0
	within := time.Duration(0) // the exchanges of the parting pass are whole
	if m.config.Pace.Partial && !m.over {
		within = m.pace.lasting(m.every())
	}
	return append(actions,
		m.weighed(Action{Kind: Propose, Peer: to, Exchange: m.out.id, Overlap: m.overlap(), Within: within}),
		Action{Kind: SetTimer, Timer: m.timers.outbound, Exchange: m.out.id, Peer: to, After: m.config.Deadline})
}

// endRound ends a round in which no partner accepted; the next begins with the next step.
func (m *neighbourhood) endRound() {
	m.owed, m.tries, m.follow = false, 0, 0
	m.steps = m.every()*m.config.Pace.burst() - 1
}

// depart begins the parting pass: each partner is asked once more, so that the last steps
// of all are shared too. A busy partner is not asked again: it is busy with the same.
func (m *neighbourhood) depart() {
	if !m.over {
		m.over, m.parting = true, len(m.partners)
	}
}

// weighed adds to an action what an exchange across weighs. Who is no partner speaks for nobody.
func (m *neighbourhood) weighed(action Action) Action {
	if m.across && m.accounts.linked(action.Peer) {
		action.View = m.overlay.View().Digest()
		action.Across = across(m.overlay, m.config.Self, action.Peer)
		action.Overlap = spread(action.Across, action.Overlap, m.beside.squared.value, m.squared.value)
	}
	return action
}

// setPace replaces the pace.
func (m *neighbourhood) setPace(pace Pace) {
	before := m.config.Pace.burst()
	if m.config.Pace = pace; m.overlay != nil && pace.burst() != before {
		m.follow = 0
		m.adopt(m.overlay) // in another order
	}
}
