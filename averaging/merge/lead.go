package merge

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

const (
	// maxCharges is after how many attempts a member is left out that others cannot send to.
	maxCharges = 3
	// attemptBits keep the attempts of two coordinators apart.
	attemptBits = 8
)

// leadership is what the coordinator keeps.
type leadership struct {
	m       *Machine
	guests  []guest
	began   bool          // an attempt
	opened  time.Duration // since when it waits for members to be there
	counter uint64        // of attempts
	unable  int           // attempts that failed since this peer's own model cannot be sent
}

// guest is a member that is done with its run.
type guest struct {
	id      topology.PeerID
	state   attendance
	heard   time.Duration
	charges int // attempts that failed since it could not be sent to
}

type attendance uint8

const (
	away    attendance = iota
	present            // ready for a place
	placed             // in the ring
	summed             // has the sum
	barred             // cannot be sent to: it is given the result
)

func (l *leadership) guest(id topology.PeerID) *guest {
	i := slices.IndexFunc(l.guests, func(g guest) bool { return g.id == id })
	if i < 0 {
		i = len(l.guests)
		l.guests = append(l.guests, guest{id: id})
	}
	return &l.guests[i]
}

// ask asks the members that have not come whether they are there.
func (l *leadership) ask() {
	for _, id := range l.m.order {
		if id != l.m.Self && l.guest(id).state == away {
			l.m.Tell(id, collective.Word{Kind: wordHere})
		}
	}
}

// attend handles where a member says that it is.
func (l *leadership) attend(from topology.PeerID, w collective.Word) {
	g := l.guest(from)
	g.heard = l.m.Now
	current, in := w.Round == l.m.Attempt(), g.state == placed || g.state == summed
	switch where := collective.Stage(w.Value); {
	case where == collective.Idle && in && current: // it has left the attempt, and the word of that was lost
		l.regroup()
		l.guest(from).state = present
	case where == collective.Idle && in:
		l.seat(from)
	case where == collective.Idle && g.state == away:
		g.state = present
	case where != collective.Idle && !(current && in):
		l.m.Tell(from, collective.Word{Kind: wordRegroup, Round: w.Round}) // an attempt of long ago
	case where == collective.Summed:
		g.state = summed
	default:
		l.m.Tell(from, collective.Word{Kind: wordHeard})
	}
}

// coordinate does what is due.
func (l *leadership) coordinate() {
	switch {
	case !l.m.leads():
	case !l.began:
		l.form()
	case l.m.Stage == collective.Summed && !slices.ContainsFunc(l.guests, func(g guest) bool { return g.state == placed }):
		for _, g := range l.guests {
			if g.state == summed {
				l.m.Tell(g.id, collective.Word{Kind: wordCommit, Round: l.m.Attempt()})
			}
		}
		l.m.adopt(l.m.Attempt())
	}
}

// form places all that are there, once these are all or the deadline has passed. Nobody is
// waited for who is lost, nor for longer than the deadline who is in its run.
func (l *leadership) form() {
	late := l.m.Now-l.m.since >= l.m.Deadline
	all := l.m.order.Has(l.m.Self)
	for _, id := range l.m.order {
		waived := id == l.m.Self || slices.Contains(l.m.passed, id) || late && slices.Contains(l.m.running, id)
		all = all && (waived || l.guest(id).state != away)
	}
	if l.m.taking() || !all && l.m.Now-l.opened < l.m.Deadline {
		return
	}
	l.counter = max(l.counter, l.m.Attempt()>>attemptBits) + 1
	l.began = true
	attempt := l.counter<<attemptBits | collective.Mark(l.m.Self)&(1<<attemptBits-1)
	for i := range l.guests {
		if g := &l.guests[i]; g.state == present {
			g.state, g.heard = placed, l.m.Now
		}
	}
	line := l.line()
	for _, id := range line { // first, so that they are ready for what comes next
		if id != l.m.Self {
			l.tellPlace(line, id, attempt)
		}
	}
	at, next, previous := collective.PlaceIn(line, slices.Index(line, l.m.Self))
	l.m.Join(attempt, at, next, previous)
}

// line is the ring, in the order of the view.
func (l *leadership) line() (line []topology.PeerID) {
	for _, id := range l.m.order {
		if s := l.guest(id).state; id == l.m.Self || s == placed || s == summed {
			line = append(line, id)
		}
	}
	if !slices.Contains(line, l.m.Self) { // the view has lost this peer itself
		line = append(line, l.m.Self)
	}
	return line
}

// seat tells a member its place again.
func (l *leadership) seat(id topology.PeerID) { l.tellPlace(l.line(), id, l.m.Attempt()) }

func (l *leadership) tellPlace(line []topology.PeerID, id topology.PeerID, attempt uint64) {
	at, _, _ := collective.PlaceIn(line, slices.Index(line, id))
	l.m.Tell(id, at.Word(wordPlace, attempt))
}

// regroup breaks the attempt off. Who answers is in the next.
func (l *leadership) regroup() {
	l.began, l.opened = false, l.m.Now
	for i := range l.guests {
		if g := &l.guests[i]; g.state == placed || g.state == summed {
			g.state = away
			l.m.Tell(g.id, collective.Word{Kind: wordRegroup, Round: l.m.Attempt()})
		}
	}
	l.m.Leave()
}

// dismiss goes on without a member.
func (l *leadership) dismiss(id topology.PeerID) {
	g := l.guest(id)
	in := g.state == placed || g.state == summed
	if g.state != barred {
		g.state = away
	}
	if in && l.began {
		l.regroup()
	}
}

// accuse breaks the attempt off, and leaves a member out that cannot be sent to; if that
// is the coordinator itself, the one that cannot send to it. A coordinator whose own model
// cannot be sent leaves that to the next.
func (l *leadership) accuse(by, suspect topology.PeerID) {
	if suspect == l.m.Self {
		suspect = by
	}
	l.regroup()
	switch suspect {
	case "":
	case l.m.Self:
		if l.unable++; l.unable >= maxCharges {
			l.m.choose()
		}
	default:
		g := l.guest(suspect)
		if g.charges++; g.charges >= maxCharges {
			g.state = barred
		}
	}
}

// goOnWithoutTheSilent breaks an attempt off in which nothing moves, if it is for want of
// words.
func (l *leadership) goOnWithoutTheSilent() {
	if !l.began || l.m.Now-l.m.Moved < l.m.Deadline {
		return
	}
	for _, g := range slices.Clone(l.guests) {
		if g.state == placed && l.m.Now-g.heard >= l.m.Deadline {
			l.m.pass(g.id)
			l.dismiss(g.id)
		}
	}
}
