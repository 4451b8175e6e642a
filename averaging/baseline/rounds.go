package baseline

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxCharges is after how many attempts of a round a member is left out that others
	// cannot send to.
	maxCharges = 3
	// barredRounds is for how many rounds.
	barredRounds = 8
	// attemptBits keep the attempts of two reigns apart.
	attemptBits = 8
)

// rounds are what the coordinator of the ring does beside being a member of it.
type rounds struct {
	m       *AllReduce
	members []attendant
	opened  time.Duration // since when somebody is ready, 0 if nobody is
	running bool          // an attempt is
	counter uint64        // of attempts
	unable  int           // attempts that failed since its own sum cannot be sent
}

// attendant is a peer that works with the coordinator.
type attendant struct {
	id      topology.PeerID
	state   attendance
	last    collective.Word // its last status
	fresh   bool            // it got them as a copy, and has made no update since
	heard   time.Duration
	speed   float64
	charges int    // attempts of this round that failed since it could not be sent to
	until   uint64 // the round up to which it is left out for that
}

// attendance is where the coordinator knows an attendant to be.
type attendance uint8

const (
	expected attendance = iota // computes
	present                    // ready for a place
	placed                     // in the ring
	finished                   // has the sum
	behind                     // needs the parameters
	done                       // the run is over for it
)

// level tells whether one has these parameters, as it said. All begin a run with equal ones,
// unless they go on from elsewhere.
func (r *rounds) level(w collective.Word) bool {
	_, phase := collective.Unpack(w.Value, statusBits)
	begins := w.View == 0 && phase&phaseInitial != 0 && r.m.initial
	return w.Kind == wordStatus && w.Round == r.m.round && (w.View == r.m.current || begins)
}

func (a attendant) inRing() bool { return a.state == placed || a.state == finished }

// workers implements role.
func (r *rounds) workers() int { return len(r.members) }

// begun implements role.
func (r *rounds) begun() {
	*r = rounds{m: r.m, counter: r.counter}
	r.m.ring.Leave()
	for id := range r.m.others {
		r.attendant(id)
	}
}

// deposed implements role.
func (r *rounds) deposed() { *r = rounds{m: r.m, counter: r.counter} }

func (r *rounds) attendant(id topology.PeerID) *attendant {
	i := slices.IndexFunc(r.members, func(a attendant) bool { return a.id == id })
	if i < 0 {
		i = len(r.members)
		r.members = append(r.members, attendant{id: id, heard: r.m.Now})
	}
	return &r.members[i]
}

// status handles where a member says that it is.
func (r *rounds) status(from topology.PeerID, w collective.Word) {
	attempt, phase := collective.Unpack(w.Value, statusBits)
	phase &^= phaseInitial
	a := r.attendant(from)
	a.heard, a.last = r.m.Now, w
	answer := word(wordHeard, r.m.round, r.m.current, 0)
	crossed := attempt == r.m.ended && r.m.ended != 0 // it was part of the last update
	switch {
	case phase == phaseSummed && crossed:
		answer = word(wordCommit, attempt, r.m.current, r.m.endedAs)
	case crossed && (phase == phaseRinging || phase == phaseUpdating):
	case a.inRing() && attempt == r.m.ring.Attempt() && (phase == phaseReady || phase == phaseDone):
		r.regroup() // it has left the attempt, and the word of that was lost
		r.status(from, w)
		return
	case a.inRing() && attempt == r.m.ring.Attempt():
		if phase == phaseSummed {
			a.state = finished
		}
	case a.inRing() && phase == phaseReady:
		answer = r.seat(from)
	case phase == phaseRinging || phase == phaseSummed: // of an attempt that was given up
		answer = word(wordRegroup, attempt, 0, 0)
	case r.m.state == updating && w.Round == r.m.round+1 && w.View == r.m.current:
		a.state = present // it has made the update sooner than this peer
		if phase == phaseDone {
			a.state = done
		}
	case r.m.state == updating:
	case phase == phaseReady && r.m.over && !r.running: // it has not heard of it
		answer = word(wordEnd, r.m.round, r.m.current, 0)
	case phase == phaseDone:
		if a.inRing() {
			r.regroup()
		}
		a.state = done
	case !r.level(w):
		a.state = behind
	case r.m.round >= a.until:
		a.state = present
	}
	r.m.Tell(from, answer)
}

// coordinate does what is due.
func (r *rounds) coordinate() {
	if !r.m.leads() || r.m.settled || r.m.halted || r.m.state == updating {
		return
	}
	r.copyOut()
	if !r.running && r.m.state == ready && !r.m.over {
		r.form()
	}
	sending := slices.ContainsFunc(r.m.Out, func(f collective.Flight) bool { return copies(f.Transfer) })
	missing := slices.ContainsFunc(r.members, func(a attendant) bool { return a.state == placed })
	if r.running && r.m.ring.Stage == collective.Summed && !missing && !sending {
		r.commit()
	}
}

// copyOut sends the parameters to those who need them.
func (r *rounds) copyOut() {
	for _, a := range r.members {
		ended := r.m.over && a.state == done && !r.level(a.last) && r.m.state == computing && !r.running
		if (ended || a.state == behind && r.m.round >= a.until) && !r.m.SendingTo(a.id, collective.Parameters) {
			r.m.Send(a.id, collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Parts: 1, Round: r.m.round}, true)
		}
	}
}

// sent lets a member come back in its own time, after a transfer of parameters.
func (r *rounds) sent(id topology.PeerID, well bool) {
	for i := range r.members {
		if a := &r.members[i]; a.id == id {
			a.fresh = a.fresh || well
			if a.state == behind {
				a.state = expected
			}
		}
	}
}

// allAlike tells, once the run is over here, whether all have these parameters. It goes by
// what they say; those who have heard nothing of the end yet are told that it is.
func (r *rounds) allAlike() bool {
	for id := range r.m.others {
		a := r.attendant(id)
		if a.state != done || !r.level(a.last) {
			return r.m.Now-r.m.overAt >= r.m.Deadline
		}
	}
	return true
}

// form places all that are ready, once these are all or the deadline has passed.
func (r *rounds) form() {
	if r.opened == 0 {
		r.opened = r.m.Now
	}
	all := !slices.ContainsFunc(r.members, func(a attendant) bool {
		return a.state != present && a.state != done && r.m.round >= a.until
	})
	if !all && r.m.Now-r.opened < r.m.Deadline {
		return
	}
	r.members = slices.DeleteFunc(r.members, func(a attendant) bool { // the late are left out
		return a.state != present && a.state != done && r.m.round >= a.until && !r.m.SendingTo(a.id, collective.Parameters)
	})
	for i := range r.members {
		if a := &r.members[i]; a.state == present {
			a.state, a.heard = placed, r.m.Now
		}
	}
	r.counter++
	r.running, r.opened = true, 0
	attempt := r.counter<<attemptBits | r.m.current&(1<<attemptBits-1)
	line := r.line()
	for _, id := range line { // first, so that they are ready for what comes next
		if id != r.m.Self {
			r.m.Tell(id, placeWord(line, id, attempt))
		}
	}
	at, next, previous := collective.PlaceIn(line, slices.Index(line, r.m.Self))
	r.m.ring.Join(attempt, at, next, previous)
}

// line is the ring, in the order of the view.
func (r *rounds) line() (line []topology.PeerID) {
	for _, id := range r.m.order {
		if id == r.m.Self || slices.ContainsFunc(r.members, func(a attendant) bool { return a.id == id && a.inRing() }) {
			line = append(line, id)
		}
	}
	if !slices.Contains(line, r.m.Self) { // the view has lost this peer itself
		line = append(line, r.m.Self)
	}
	return line
}

// seat is the word of a member's place.
func (r *rounds) seat(id topology.PeerID) collective.Word {
	return placeWord(r.line(), id, r.m.ring.Attempt())
}

func placeWord(line []topology.PeerID, id topology.PeerID, attempt uint64) collective.Word {
	at, _, _ := collective.PlaceIn(line, slices.Index(line, id))
	return at.Word(wordPlace, attempt)
}

// commit lets all update, once all have the sum and nobody is being sent what the update
// would change.
func (r *rounds) commit() {
	r.running, r.unable = false, 0
	r.divide()
	forget := slices.ContainsFunc(r.members, func(a attendant) bool { return a.state == finished && a.fresh })
	as := agreed(r.m.progress, forget)
	for i := range r.members {
		if a := &r.members[i]; a.state == finished {
			a.state, a.charges, a.fresh = expected, 0, false
			r.m.Tell(a.id, word(wordCommit, r.m.ring.Attempt(), r.m.current, as))
		} else if a.state == present { // it came too late for the attempt, and will be behind
			a.state = expected
		}
	}
	r.m.update(as)
}

// divide gives the members their parts of the flock's batch.
func (r *rounds) divide() {
	if r.m.dividing == 0 {
		return
	}
	speeds := []float64{r.m.speed.value}
	for _, a := range r.members {
		speeds = append(speeds, a.speed)
	}
	shares := Shares(r.m.dividing*len(speeds), speeds)
	r.m.batch = shares[0]
	for i, a := range r.members {
		r.m.Tell(a.id, word(wordBatch, r.m.round, r.m.current, float64(shares[i+1])))
	}
}

// dismiss goes on without a member.
func (r *rounds) dismiss(id topology.PeerID) {
	i := slices.IndexFunc(r.members, func(a attendant) bool { return a.id == id })
	if i < 0 || !r.m.leads() {
		return
	}
	r.m.AbortOut(id)
	inRing := r.members[i].inRing()
	r.members = slices.Delete(r.members, i, i+1)
	if inRing && r.running {
		r.regroup()
	}
}

// regroup breaks the attempt off. Who answers is in the next.
func (r *rounds) regroup() {
	r.running, r.opened = false, r.m.Now
	for i := range r.members {
		if a := &r.members[i]; a.inRing() {
			a.state = expected
			r.m.Tell(a.id, word(wordRegroup, r.m.ring.Attempt(), r.m.current, 0))
		}
	}
	r.m.ring.Leave()
}

// accuse breaks the attempt off, and leaves a member out that cannot be sent to; if that
// is the coordinator itself, the one that cannot send to it. A coordinator that cannot send
// what the ring has summed halts the run.
func (r *rounds) accuse(by, suspect topology.PeerID) {
	if suspect == r.m.Self {
		suspect = by
	}
	r.regroup()
	switch suspect {
	case "":
	case r.m.Self:
		if r.unable++; r.unable >= maxCharges {
			r.m.halted = true
			r.m.halt()
		}
	default:
		a := r.attendant(suspect)
		if a.charges++; a.charges >= maxCharges {
			a.charges, a.until, a.state = 0, r.m.round+barredRounds, expected
		}
	}
}

// attend speaks to those who do not follow, and goes on without those who are silent.
func (r *rounds) attend() {
	r.m.invite(func(id topology.PeerID) bool {
		return slices.ContainsFunc(r.members, func(a attendant) bool { return a.id == id && !(r.m.over && a.state == expected) })
	})
	if !r.running || r.m.Now-r.m.ring.Moved < r.m.Deadline {
		return
	}
	for _, a := range slices.Clone(r.members) {
		if a.state == placed && r.m.Now-a.heard >= r.m.Deadline {
			r.dismiss(a.id)
		}
	}
}
