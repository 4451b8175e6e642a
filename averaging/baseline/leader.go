package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// This file is what the leader of the ring does beside being a member of it.

const (
	// maxCharges is after how many attempts of a round a member is left out that others
	// cannot send to.
	maxCharges = 3
	// barredRounds is for how many rounds.
	barredRounds = 8
	// takeover is how many attempts of a former leader its successor leaves room for that
	// it has not heard of.
	takeover = 1 << 20
	// attemptBits keep the attempts of two leaders apart.
	attemptBits = 8
)

// leadership is what the leader keeps of the ring.
type leadership struct {
	members []attendant   // who follow
	barred  []bar         // who are left out for some rounds
	awaited int           // how many are to come at least
	open    bool          // somebody is ready
	forming time.Duration // since when
	running bool          // an attempt is
	counter uint64        // of attempts
	unable  int           // attempts that failed since the leader's own gradient cannot be sent
}

// attendant is a peer that follows the leader.
type attendant struct {
	id      topology.PeerID
	state   attendance
	heard   time.Duration
	speed   float64
	rest    averaging.Word // where it rests, as it said last
	caught  uint64         // the round, plus 1, of the parameters that it got from this leader
	early   bool           // it is ready with the parameters that it is known to be getting
	fresh   bool           // it got the parameters, and has made no update since
	charges int            // attempts of this round that failed since it could not be sent to
}

// attendance is where the leader knows an attendant to be.
type attendance uint8

const (
	expected attendance = iota // computes
	present                    // ready for a place
	placed                     // in the ring
	finished                   // has the sum
	behind                     // needs the parameters
	catching                   // gets them
	asleep                     // rests
	waking                     // gets the parameters of the end
)

// bar leaves a member out up to a round.
type bar struct {
	id    topology.PeerID
	until uint64
}

func (m *AllReduce) followers() uint64 { return uint64(len(m.members)) }

// enthroned implements duties.
func (m *AllReduce) enthroned() {
	m.abort("")
	m.members, m.barred, m.running, m.unable = nil, nil, false, 0
	m.counter = max(m.counter, m.ring.attempt>>attemptBits) + takeover
	m.awaited = max(m.ring.size-2, 0)
	if m.parent == 0 {
		for id := range m.others {
			m.attendant(id)
		}
	}
	if m.phase == clearing || m.phase == ringing {
		m.phase = ready
	}
	m.opened()
}

// deposed implements duties.
func (m *AllReduce) deposed() {
	m.abort("")
	m.members, m.barred, m.running, m.unable = nil, nil, false, 0
	if m.ringing() {
		m.phase = ready
	}
}

// opened begins the wait for those who are not ready.
func (m *AllReduce) opened() { m.open, m.forming = true, m.now }

func (m *AllReduce) attendant(id topology.PeerID) *attendant {
	i := slices.IndexFunc(m.members, func(a attendant) bool { return a.id == id })
	if i < 0 {
		i = len(m.members)
		m.members = append(m.members, attendant{id: id, heard: m.now})
	}
	return &m.members[i]
}

// speeds notes how fast a member is.
func (m *AllReduce) speeds(from topology.PeerID, speed float64) {
	if m.leads() {
		m.attendant(from).speed = speed
	}
}

// status handles where a member says that it is.
func (m *AllReduce) status(from topology.PeerID, w averaging.Word) {
	if !m.leads() {
		m.pointed(from)
		return
	}
	a := m.attendant(from)
	a.heard = m.now
	attempt, p := unpacked(w.Value, statusBits)
	p &^= phaseInitial
	switch {
	case phase(p) == summed && attempt == m.ended && m.ended != 0:
		m.tell(from, word(wordCommit, attempt, m.lineage, m.endedAs))
	case phase(p) == resting && !m.ahead(w):
		m.rests(a, w)
	case attempt == m.ended && m.ended != 0 && phase(p) != ready && phase(p) != resting: // it crossed the word of its sum
	case m.ahead(w):
		m.handOver(from)
	case m.phase == updating && phase(p) == ready && w.Round == m.round+1 && w.View == m.lineage && a.state == expected:
		a.state = present // it has made the update sooner than this peer
	case a.state == catching && phase(p) == ready && w.Round == m.round && w.View == 0:
		a.early = true
		m.tell(from, word(wordHeard, m.round, m.lineage, 0))
	case !m.level(a, w) || m.phase == updating:
		m.left(a)
		if p := phase(p); (p == clearing || p == ringing) && !(m.running && attempt == m.ring.attempt) {
			// That attempt was given up by whoever led it. It takes no
			// parameters before it has left it.
			m.tell(from, word(wordRegroup, attempt, 0, 0))
			return
		}
		m.tell(from, word(wordHeard, m.round, m.lineage, 0))
	case (a.state == placed || a.state == finished) && phase(p) == ready && attempt == m.ring.attempt:
		m.regroup() // it has left the attempt, and the word of that was lost
		a.state = present
	case a.state == placed && attempt != m.ring.attempt:
		m.seated(from, m.ring.attempt)
	case a.state == placed && phase(p) == summed:
		a.state = finished
	case a.state == placed || a.state == finished || a.state == present || m.barredNow(from):
		m.tell(from, word(wordHeard, m.round, m.lineage, 0))
	default:
		a.state = present
	}
}

// left notes that a member has not got the parameters of the round.
func (m *AllReduce) left(a *attendant) {
	if a.state == placed || a.state == finished {
		m.regroup()
	}
	if a.state != catching && a.state != waking {
		a.state = behind
	}
}

// barredNow tells whether a member is left out of the rounds for now.
func (m *AllReduce) barredNow(id topology.PeerID) bool {
	return slices.ContainsFunc(m.barred, func(b bar) bool { return b.id == id && m.round < b.until })
}

// level tells whether a member has the leader's parameters. One that got them from it
// knows no lineage until it has made an update. All begin a run with equal ones, unless
// they go on from elsewhere, and a merge with their own: whoever has not merged is level
// with whoever has not.
func (m *AllReduce) level(a *attendant, w averaging.Word) bool {
	if m.merges {
		return w.Round == m.round
	}
	_, p := unpacked(w.Value, statusBits)
	begins := m.round == 0 && m.parent == 0 && m.initial && p&phaseInitial != 0
	same := w.View == m.lineage || w.View == m.parent && w.View != 0 && m.round == m.forked ||
		w.View == 0 && (a.caught == m.round+1 || begins)
	return w.Round == m.round && same
}

// ahead tells whether a member has made the update that this leader, which was a member
// then, was not told to make before the former leader died. Then that one leads: it
// knows at which learning rate the update was.
func (m *AllReduce) ahead(w averaging.Word) bool {
	return w.View == m.parent && w.View != 0 && m.round == m.forked && w.Round == m.round+1
}

// handOver lets another lead.
func (m *AllReduce) handOver(to topology.PeerID) {
	lineage := m.parent
	m.tell(to, standing{leader: to, round: m.round}.word(lineage))
	if m.round == m.forked {
		m.lineage = lineage
	}
	m.follow(to)
}

// lead does what is due.
func (m *AllReduce) lead() {
	if !m.leads() {
		return
	}
	m.givenUp()
	m.catchUp()
	if !m.running {
		m.form()
	}
	if m.running {
		m.commit()
	}
}

// catchUp sends the parameters to those who need them.
func (m *AllReduce) catchUp() {
	if m.phase == updating || m.merges && m.round == 0 {
		return
	}
	for i := range m.members {
		if a := &m.members[i]; a.state == behind && !m.barredNow(a.id) {
			a.state = catching
			m.handOut(a.id, m.gift(), true)
		}
	}
}

// givenUp notes that what was sent to members was aborted with all else: they are sent it
// anew.
func (m *AllReduce) givenUp() {
	for i := range m.members {
		a := &m.members[i]
		sent := func(f flight) bool { return f.peer == a.id && m.gives(f.transfer) }
		if a.state != catching || slices.ContainsFunc(m.out, sent) {
			continue
		}
		if a.state = expected; a.rest.Kind == wordStatus {
			a.state = asleep
		}
		a.early = false
	}
}

// excuse lets a member come back in its own time, after a transfer of parameters.
func (m *AllReduce) excuse(f flight, well bool) {
	i := slices.IndexFunc(m.members, func(a attendant) bool { return a.id == f.peer })
	if i < 0 || m.members[i].state != catching && m.members[i].state != waking {
		return
	}
	a := &m.members[i]
	if a.state == waking {
		m.woken(a, f, well)
		return
	}
	a.state = expected
	if well {
		a.caught, a.fresh = f.transfer.Round+1, true
	}
	switch {
	case a.rest.Kind == wordStatus:
		a.state = asleep
	case well && a.early:
		a.state = present
	}
	a.early = false
}

// form places all that are ready, once these are all or the deadline has passed.
func (m *AllReduce) form() {
	own := m.phase == ready || m.phase == summed
	here, rest, all := 0, 0, true
	for _, a := range m.members {
		switch {
		case a.state == present:
			here++
		case a.state == asleep || a.state == waking:
			rest++
		case !m.barredNow(a.id):
			all = false
		}
	}
	if !m.open && (own || here > 0) {
		m.opened()
	}
	late := m.open && m.now-m.forming >= m.config.Deadline
	switch {
	case here == 0 && !own, m.phase == updating:
	case m.resting: // they have not heard yet that the run is over
		m.succeed()
	case !late && !(all && own && here+rest >= m.awaited), !late && here == 0 && rest > 0: // nor has this peer
	case !own:
		m.succeed()
	default:
		m.seatAll()
	}
}

// seatAll begins an attempt with those who are ready.
func (m *AllReduce) seatAll() {
	for _, a := range m.members {
		if a.state != present && a.state != asleep {
			m.abortOut(a.id)
		}
	}
	m.members = slices.DeleteFunc(m.members, func(a attendant) bool { return a.state != present && a.state != asleep })
	m.counter++
	m.running, m.open, m.awaited = true, false, 0
	attempt := m.counter<<attemptBits | m.lineage&(1<<attemptBits-1)
	for i := range m.members {
		if a := &m.members[i]; a.state == present {
			a.state, a.heard = placed, m.now
		}
	}
	line := m.line()
	rank := slices.Index(line, m.self)
	for _, id := range line {
		m.seated(id, attempt) // first, so that they are ready for what comes next
	}
	at, next, previous := placeIn(line, rank, m.config.Parts)
	m.join(newRing(attempt, at, next, previous, m.ring))
}

// line is the ring, in the order of the view.
func (m *AllReduce) line() (line []topology.PeerID) {
	for _, id := range m.order {
		in := slices.ContainsFunc(m.members, func(a attendant) bool {
			return a.id == id && (a.state == placed || a.state == finished)
		})
		if in || id == m.self {
			line = append(line, id)
		}
	}
	if !slices.Contains(line, m.self) { // the view has lost this peer itself
		line = append(line, m.self)
	}
	return line
}

// seated tells a member its place.
func (m *AllReduce) seated(id topology.PeerID, attempt uint64) {
	line := m.line()
	at, _, _ := placeIn(line, slices.Index(line, id), m.config.Parts)
	m.tell(id, at.word(attempt))
}

// commit lets all update, once all have the sum and nobody is being sent what the update
// would change.
func (m *AllReduce) commit() {
	if m.phase != summed {
		return
	}
	for _, a := range m.members {
		if a.state == placed || a.state == catching {
			return
		}
	}
	m.running, m.open, m.unable = false, false, 0
	m.divide()
	forget := slices.ContainsFunc(m.members, func(a attendant) bool { return a.state == finished && a.fresh })
	as := agreed(m.progress, forget)
	for i := range m.members {
		if a := &m.members[i]; a.state == finished {
			a.state, a.charges, a.fresh = expected, 0, false
			m.tell(a.id, word(wordCommit, m.ring.attempt, m.lineage, as))
		}
	}
	m.update(as)
}

// divide gives the members their parts of the flock's batch.
func (m *AllReduce) divide() {
	if m.config.Batch == 0 {
		return
	}
	speeds := []float64{m.speed.value}
	for _, a := range m.members {
		speeds = append(speeds, a.speed)
	}
	shares := Shares(m.config.Batch*len(speeds), speeds)
	m.batch = shares[0]
	for i, a := range m.members {
		m.tell(a.id, word(wordBatch, m.round, m.lineage, float64(shares[i+1])))
	}
}
