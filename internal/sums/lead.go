package sums

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// maxBroken is the count of failures from which on the sum is made without a member.
	maxBroken = 5
	// attemptBits distinguish the attempts of two coordinators; maxAttempt leaves room for further attempts.
	attemptBits = 16
	maxAttempt  = 1 << 62
	// unanswered is how much longer than for participants a coordinator waits for members'
	// answers before the sum fails: silent members may already have the sum.
	unanswered = time.Minute
)

// lead is what a coordinator knows about a sum.
type lead struct {
	m       *Machine
	name    string
	op      Op
	length  uint64
	came    comers
	lacking search // for a missing member
	blame   blame
	others  uint64        // the highest attempt of other coordinators
	changed time.Duration // when a participant came for the first time, or an attempt was given up
	known   map[ID]bool   // members that have ever come
	voided  int           // attempts
	noted   time.Duration // when the missing members were last reported
	trial
	opening
	inquiry
}

func newLead(m *Machine, name string) *lead {
	m.leads++
	l := &lead{
		m: m, name: name, came: make(comers), changed: m.now, noted: m.now, known: make(map[ID]bool),
		blame:   blame{between: make(map[[2]ID]int), out: make(map[ID]ID)},
		inquiry: inquiry{inquires: m.leader != m.self, question: m.leads, answered: make(map[ID]bool), asked: m.now - m.times.Retransmit},
	}
	for id, at := range m.thrown {
		if m.now-at < outFor {
			l.blame.out[id] = ""
		}
	}
	return l
}

// anew restarts the searches for members that have not come or not answered.
func (l *lead) anew() { l.lacking, l.silence = 0, 0 }

// receive takes a member's message to its coordinator.
func (l *lead) receive(from ID, w *wire.Sum) {
	answers := w.Question == l.question
	if answers {
		l.answered[from] = true
	}
	switch w.Kind {
	case wire.SumStatus:
		if !l.status(from, w) {
			return
		}
	case wire.SumLeft:
		l.fails(from)
		l.drop(from)
	case wire.SumBroken:
		l.broken(from, w)
	case wire.SumDone: // by the COMMIT of a former coordinator
		if answers && w.Attempt == 0 && l.op.moved() { // otherwise a single liar could stop every sum
			l.fault(w.Op, w.Detail)
			return
		}
		if answers && w.Attempt > 0 && w.Attempt != l.attempt && (w.Attempt != hearsay || l.attempt+l.others == 0) { // nobody can have used an attempt of this coordinator
			l.release(w.Attempt, w.Masks)
			return
		}
	}
	l.advance()
}

// status records a participant's status. It returns false if that ends the sum.
func (l *lead) status(from ID, w *wire.Sum) bool {
	said, sound := readBrought(w)
	if w.Attempt >= maxAttempt || !sound {
		return false
	}
	if l.blame.thrown(from) {
		l.known[from] = true
		l.m.tell(from, thrown(l.name))
		return true
	}
	c := l.came[from]
	if c == nil {
		if len(l.came) > 0 && (Op(w.Op) != l.op || w.Length != l.length) {
			l.fault(codeOf(ErrMismatch), fmt.Sprintf("%s brings a %s of %d numbers, %s a %s of %d",
				from.Short(), Op(w.Op), w.Length, l.came.ids()[0].Short(), l.op, l.length), from)
			return false
		}
		c = &comer{ID: from}
		l.came[from] = c
		if l.op, l.length = Op(w.Op), w.Length; !l.known[from] {
			l.known[from], l.changed = true, l.m.now
		}
	}
	c.least, c.timeout = int(w.Least), time.Duration(w.Timeout)*time.Millisecond
	c.received, c.term, c.spoiler, c.brings, c.value, c.brought = l.m.now, w.Term, ID(w.Next), w.Size, w.Value, said
	if mine := w.Attempt == l.attempt && l.running && c.placed; mine {
		if !c.took || w.Rank > c.progress || Stage(w.Stage) > c.stage {
			l.moved, c.moved = l.m.now, l.m.now
		}
		c.took, c.progress = true, max(c.progress, w.Rank)
	}
	l.follow(c, Stage(w.Stage), w.Attempt)
	return true
}

// follow records a participant's stage and attempt.
func (l *lead) follow(c *comer, stage Stage, attempt uint64) {
	mine := attempt == l.attempt && attempt > 0
	switch {
	case l.running && c.placed && !mine: // the PLACE is on its way, or was lost
		if l.m.now-c.placeSent >= l.m.times.Retransmit {
			l.tellPlace(c)
		}
		return
	case l.running && c.placed && stage == Waiting: // it has given the attempt up
		if l.fails(c.ID); l.came[c.ID] == nil {
			return
		}
		l.regroup(c.ID.Short() + " does not go on")
	case !l.running && mine && stage != Waiting: // it does not know yet that the attempt is given up
		l.m.tell(c.ID, &wire.Sum{Kind: wire.SumVoid, Name: l.name, Attempt: attempt})
	case attempt > 0 && !mine: // another coordinator has given it a place
		l.others = max(l.others, min(attempt, maxAttempt/2)) // leaves room for further attempts
		if !l.running && !l.inquires {
			l.inquires = true
			l.anew()
		}
	}
	c.stage, c.attempt = stage, attempt
}

// drop removes a participant.
func (l *lead) drop(id ID) {
	c := l.came[id]
	if c == nil {
		return
	}
	delete(l.came, id)
	if l.anew(); c.placed {
		l.regroup(id.Short() + " has left")
	}
}

// fails adds a failure to a participant that gives an attempt up; only a slow one or a liar does.
func (l *lead) fails(id ID) {
	if c := l.came[id]; c != nil && c.placed && l.running {
		l.hold(id, "", "", stallCounts)
	}
}

// membersChanged removes participants that are no longer members.
func (l *lead) membersChanged() {
	for _, id := range l.came.ids() {
		if !l.m.here(id) {
			l.blame.clear(id) // the others were not at fault
			l.drop(id)
		}
	}
	l.anew()
	l.advance()
}

// regroup gives the attempt up. Participants that answer are in the next.
func (l *lead) regroup(why string) {
	if !l.running || l.opens > 0 {
		return
	}
	l.running, l.changed, l.noted = false, l.m.now, l.m.now
	l.voided++
	l.m.fact(Fact{What: Voided, Sum: l.name, Why: why})
	for _, id := range l.line {
		if c := l.came[id]; c != nil {
			l.m.tell(id, &wire.Sum{Kind: wire.SumVoid, Name: l.name, Attempt: l.attempt})
			c.placed = false
		}
	}
}

// ready tells whether a participant can be given a place: it is in no attempt of this
// coordinator.
func (l *lead) ready(c *comer) bool { return c.stage == Waiting || c.attempt != l.attempt }

func (l *lead) allReady() bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(l.came)), func(c *comer) bool { return !l.ready(c) })
}

// advance begins an attempt if all expected members have come, and ends it if all participants have the sum.
func (l *lead) advance() {
	switch {
	case len(l.came) == 0:
		l.m.open[l.name].lead = nil
	case l.voided > maxBroken*(len(l.m.members)+1):
		l.fault(codeOf(ErrTooFew), fmt.Sprintf("%d attempts have come to nothing", l.voided))
	case l.opens > 0:
		l.opening.proceed(l)
	case l.running:
		if !l.holding.finds(l.line, func(id ID) bool { return l.came[id].stage != Holding || l.came[id].attempt != l.attempt }) {
			l.open(l, l.attempt)
		}
	case (l.inquires || len(l.claims(l)) > 0) && !l.informed():
		l.inquire()
	case l.begun(l) > 0:
		l.open(l, l.begun(l))
	case l.rejects(l):
		l.advance()
	case !l.lacking.finds(l.expected(), l.lacks) && l.enough() && l.allReady():
		l.begin()
	}
}

// enough tells whether as many have come.
func (l *lead) enough() bool {
	needed, _ := l.came.least(l.op)
	return len(l.came) >= needed
}

// expected are the participants of the last sum, or all members if there was none.
func (l *lead) expected() []ID {
	if l.m.group != nil {
		return l.m.group
	}
	return l.m.members
}

// lacks tells whether an expected member has not come, but may still.
func (l *lead) lacks(id ID) bool {
	return l.came[id] == nil && !l.m.excused[id] && !l.blame.thrown(id) && l.m.here(id)
}

// missing are all expected members that have not come.
func (l *lead) missing() []ID { return those(l.expected(), l.lacks) }

// begin gives out places, once it is sure that nobody has used the sum.
func (l *lead) begin() {
	if !l.informed() {
		l.inquire()
		return
	}
	if l.refuses(len(l.came)) {
		return
	}
	l.attempt = (max(l.attempt, l.others)>>attemptBits+1)<<attemptBits | l.m.self.Fingerprint()&(1<<attemptBits-1)
	l.running, l.began, l.moved, l.noted, l.holding = true, l.m.now, l.m.now, l.m.now, 0
	l.line, l.alone = l.blame.order(l.op, l.came.ids(), l.attempt), len(l.m.members) == 1
	l.enlist(l)
	for rank, id := range l.line {
		c := l.came[id]
		c.placed, c.stage, c.attempt, c.took, c.progress, c.spoiler, c.rank, c.moved = true, Placed, l.attempt, false, 0, "", rank, l.m.now
		l.tellPlace(c)
	}
}

// tellPlace sends a participant its place.
func (l *lead) tellPlace(c *comer) {
	c.placeSent = l.m.now
	place := &wire.Sum{Kind: wire.SumPlace, Name: l.name, Attempt: l.attempt, Length: uint64(l.stripes), Rank: uint32(c.rank), Size: uint32(len(l.line))}
	for _, rank := range partners(schedule(l.op, c.rank, len(l.line), 0)) {
		place.Partners = append(place.Partners, string(l.line[rank]))
	}
	if l.masks != nil {
		place.Op, place.Masks = uint8(Masked), l.masks(c.rank)
	}
	l.m.tell(c.ID, place)
}

// commit lets all use the sum of an attempt, with the seeds of its masks.
func (l *lead) commit(attempt uint64, seeds []byte) {
	if l.m.group, l.m.leader = slices.Clone(l.line), l.m.self; l.alone { // then it coordinates nobody: those that it meets have a coordinator
		l.m.leader = ""
	}
	for _, s := range l.m.open {
		if s.lead != nil {
			s.lead.anew()
		}
	}
	l.release(attempt, seeds)
}

// release ends the sum: participants that have the result of an attempt use it.
func (l *lead) release(attempt uint64, seeds []byte) {
	over := ended{attempt: attempt, detail: l.came.spoilt(), value: l.came.value()}
	l.m.over.Add(l.name, over)
	l.m.seeds.Add(l.name, seeds)
	over.seeds = seeds
	own := l.came[l.m.self] != nil
	for _, id := range l.came.ids() {
		if id == l.m.self {
			continue
		}
		c := l.came[id]
		l.m.tell(id, over.answer(&wire.Sum{Name: l.name, Attempt: c.attempt, Stage: uint8(c.stage), Term: c.term}))
	}
	s := l.m.open[l.name]
	s.lead = nil
	if own && s.own != nil {
		s.own.receive(l.m.self, over.answer(s.own.status()))
	}
}

// fault ends the sum for all participants, and for the members in also.
func (l *lead) fault(code uint8, detail string, also ...ID) {
	l.m.over.Add(l.name, ended{failed: true, why: code, detail: detail})
	for _, id := range append(l.came.ids(), also...) {
		l.m.tell(id, &wire.Sum{Kind: wire.SumFault, Name: l.name, Op: code, Detail: detail})
	}
	l.running, l.came = false, nil
	l.m.open[l.name].lead = nil
}

// tick asks again, and goes on without members that do not come, are silent, or delay the others.
func (l *lead) tick() {
	for _, id := range l.came.ids() {
		c := l.came[id]
		if c == nil {
			continue // the sum has ended
		}
		stuck := !l.running && l.m.now-l.changed >= l.m.times.Silence && !l.ready(c)
		if stuck {
			l.hold(c.ID, "", "", stallCounts)
		}
		if stuck || c.ID != l.m.self && l.m.now-c.received >= l.m.times.Silence { // this member itself may have stood still
			l.fails(c.ID)
			l.drop(c.ID)
		}
	}
	if l.running && l.opens == 0 && (l.m.now-l.moved >= standstill+slack || l.m.now-l.began >= slack+lasts(l.op, l.moves(), len(l.line))) {
		l.stall()
	}
	l.advance()
	s := l.m.open[l.name]
	if s != nil && s.lead == l {
		l.note()
	}
	switch waited, wait := l.m.now-l.changed, l.came.timeout(); {
	case s == nil || s.lead != l || l.running || waited < wait:
	case !l.informed():
		if l.inquire(); waited >= wait+unanswered {
			l.fault(codeOf(ErrTooFew), "whether they have made the sum is not said by "+shorts(l.silent()))
		}
	case !l.allReady():
	case l.enough():
		l.begin()
	default:
		needed, says := l.came.least(l.op)
		l.fault(codeOf(ErrTooFew), fmt.Sprintf("%d have come within %s of the last, %s needs %d; missing of the members: %s",
			len(l.came), wait, cmp.Or(says.Short(), "a sum with masks"), needed, shorts(l.missing())))
	}
}

// moves is how many bytes a participant moves in the attempt. For a gathering in which this member
// takes part, only received bytes count, since others may announce more than they send.
func (l *lead) moves() uint64 {
	if l.op != Gather {
		return moves(l.length)
	}
	if own := l.m.open[l.name].own; own != nil && own.current != nil && own.attempt == l.attempt {
		return own.current.blocks.bytes
	}
	_, together := l.came.brings()
	return min(together, MaxGathered)
}

// note reports the missing members now and then.
func (l *lead) note() {
	if l.m.now-l.noted < noteEvery {
		return
	}
	l.noted = l.m.now
	who, why := l.missing(), "to come"
	switch {
	case l.opens > 0:
		_, who = l.telling(l)
		why = "to tell the seeds of their masks"
	case l.running:
		who, why = those(l.line, func(id ID) bool { return l.came[id].stage != Holding }), "to have the sum"
	case len(who) == 0:
		who, why = l.silent(), "to say what they know"
	}
	l.m.fact(Fact{What: Waits, Sum: l.name, Who: who, Why: why})
}
