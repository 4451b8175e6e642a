package sums

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// maxBroken is how many attempts may fail since a member cannot be sent to, before
	// the sum is made without it.
	maxBroken = 5
	// silence is after what time a participant is given up that says nothing any more.
	silence = 20 * time.Second
	// attemptBits keep the attempts of two coordinators apart, maxAttempt leaves room for more.
	attemptBits = 16
	maxAttempt  = 1 << 62
	// unanswered is for how much longer than for participants a coordinator waits for members'
	// answers, before the sum fails: it may have been made with those.
	unanswered = time.Minute
)

// lead is what a coordinator knows of a sum.
type lead struct {
	m       *Machine
	name    string
	op      uint8
	length  uint64
	least   int
	wait    time.Duration
	came    []comer
	running bool          // an attempt is
	attempt uint64        // the last of this coordinator
	others  uint64        // the highest of others
	changed time.Duration // when somebody came for the first time, or an attempt was given up
	known   map[ID]bool   // who has ever come
	voided  int           // attempts

	inquires bool   // others may have followed another: what they say counts only as an answer
	question uint32 // to tell answers from those to an earlier lead
	answered map[ID]bool
	asked    time.Duration
}

// comer is a participant.
type comer struct {
	ID
	stage   Stage
	attempt uint64
	term    uint32
	placed  bool
	told    time.Duration // of its place
	heard   time.Duration
	failed  int // attempts, since it could not be sent to
}

func newLead(m *Machine, name string) *lead {
	m.leads++
	return &lead{
		m: m, name: name, changed: m.now, known: make(map[ID]bool),
		inquires: m.leader != m.self, question: m.leads, answered: make(map[ID]bool), asked: m.now - sayAgain,
	}
}

func (l *lead) find(id ID) *comer {
	if i := slices.IndexFunc(l.came, func(c comer) bool { return c.ID == id }); i >= 0 {
		return &l.came[i]
	}
	return nil
}

// hear takes what a member says to its coordinator.
func (l *lead) hear(from ID, w *wire.Sum) {
	answers := w.Question == l.question
	switch w.Kind {
	case wire.SumStatus:
		if !l.status(from, w) {
			return
		}
	case wire.SumLeft:
		l.drop(from)
	case wire.SumBroken:
		l.broken(ID(w.Next), w.Attempt)
	case wire.SumDone:
		if answers {
			l.release(w.Attempt) // by a former coordinator's word
			return
		}
	}
	if answers {
		l.answered[from] = true
	}
	l.advance()
}

// status notes where a participant is. It reports false if that ends the sum.
func (l *lead) status(from ID, w *wire.Sum) bool {
	if w.Attempt >= maxAttempt {
		return false
	}
	c := l.find(from)
	if c == nil {
		if len(l.came) > 0 && (w.Op != l.op || w.Length != l.length) {
			l.fault(codeOf(ErrMismatch), fmt.Sprintf("%s brings a %s of %d numbers, %s a %s of %d",
				short(from), Op(w.Op), w.Length, short(l.came[0].ID), Op(l.op), l.length), from)
			return false
		}
		l.came = append(l.came, comer{ID: from})
		slices.SortFunc(l.came, func(a, b comer) int { return strings.Compare(string(a.ID), string(b.ID)) })
		c = l.find(from)
		if l.op, l.length = w.Op, w.Length; !l.known[from] {
			l.known[from], l.changed = true, l.m.now
		}
	}
	l.least = max(l.least, int(w.Least))
	l.wait = max(l.wait, time.Duration(w.Patience)*time.Millisecond)
	c.heard, c.term = l.m.now, w.Term
	l.follow(c, Stage(w.Stage), w.Attempt)
	return true
}

// follow notes the stage and the attempt that a participant is in.
func (l *lead) follow(c *comer, stage Stage, attempt uint64) {
	mine := attempt == l.attempt && attempt > 0
	switch {
	case l.running && c.placed && !mine: // its place is on its way, or was lost
		if l.m.now-c.told >= sayAgain {
			l.tellPlace(c)
		}
		return
	case l.running && c.placed && stage == Waiting: // it has given the attempt up
		l.regroup()
	case !l.running && mine && stage != Waiting: // it has not heard that it is given up
		l.m.tell(c.ID, &wire.Sum{Kind: wire.SumVoid, Name: l.name, Attempt: attempt})
	case attempt > 0 && !mine: // another coordinator has given it a place
		l.others = max(l.others, attempt)
		l.inquires = l.inquires || !l.running
	}
	c.stage, c.attempt = stage, attempt
}

// drop goes on without a participant.
func (l *lead) drop(id ID) {
	c := l.find(id)
	if c == nil {
		return
	}
	placed := c.placed
	l.came = slices.DeleteFunc(l.came, func(c comer) bool { return c.ID == id })
	if placed && l.running {
		l.regroup()
	}
}

// membersChanged goes on without those who are members no more.
func (l *lead) membersChanged() {
	for _, c := range slices.Clone(l.came) {
		if !slices.Contains(l.m.members, c.ID) {
			l.drop(c.ID)
		}
	}
	l.advance()
}

// broken breaks off an attempt in which somebody cannot be sent to.
func (l *lead) broken(suspect ID, attempt uint64) {
	if !l.running || attempt != l.attempt {
		return
	}
	if c := l.find(suspect); c != nil && suspect != l.m.self {
		if c.failed++; c.failed >= maxBroken {
			fault := &wire.Sum{Kind: wire.SumFault, Name: l.name, Op: codeOf(ErrUnreachable), Detail: fmt.Sprintf("in %d attempts", c.failed)}
			l.m.tell(suspect, fault)
			l.drop(suspect)
			return
		}
	}
	l.regroup()
}

// regroup gives the attempt up. Who answers is in the next.
func (l *lead) regroup() {
	l.running, l.changed = false, l.m.now
	l.voided++
	for i := range l.came {
		c := &l.came[i]
		if c.placed {
			l.m.tell(c.ID, &wire.Sum{Kind: wire.SumVoid, Name: l.name, Attempt: l.attempt})
		}
		c.placed = false
	}
}

// ready tells whether a participant can be given a place: it is in no attempt of this
// coordinator's.
func (l *lead) ready(c comer) bool { return c.stage == Waiting || c.attempt != l.attempt }

// advance begins an attempt if all have come that are expected, and ends it if all have the sum.
func (l *lead) advance() {
	switch {
	case len(l.came) == 0:
		l.m.open[l.name].lead = nil
	case l.voided > maxBroken*(len(l.m.members)+1):
		l.fault(codeOf(ErrTooFew), fmt.Sprintf("%d attempts have come to nothing", l.voided))
	case l.running:
		if !slices.ContainsFunc(l.came, func(c comer) bool { return c.placed && (c.stage != Holding || c.attempt != l.attempt) }) {
			l.commit()
		}
	case l.inquires && !l.informed():
		l.inquire()
	case slices.ContainsFunc(l.came, func(c comer) bool { return !l.ready(c) }):
	case len(l.came) >= max(l.least, 1) && len(l.missing()) == 0:
		l.begin()
	}
}

// missing are those who are expected and have not come: who took part in the last sum, or all
// members if there was none.
func (l *lead) missing() (missing []ID) {
	expected := l.m.members
	if l.m.group != nil {
		expected = l.m.group
	}
	for _, id := range expected {
		if l.find(id) == nil && !l.m.asleep[id] && slices.Contains(l.m.members, id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// begin gives out places, once nobody can have used the sum.
func (l *lead) begin() {
	if !l.informed() {
		l.inquire()
		return
	}
	own := fnv.New32a()
	own.Write([]byte(l.m.self))
	l.attempt = (max(l.attempt, l.others)>>attemptBits+1)<<attemptBits | uint64(own.Sum32())&(1<<attemptBits-1)
	l.running = true
	for i := range l.came {
		c := &l.came[i]
		c.placed, c.stage, c.attempt = true, Placed, l.attempt
	}
	for i := range l.came {
		l.tellPlace(&l.came[i])
	}
}

// tellPlace gives a participant its place among those who have one.
func (l *lead) tellPlace(c *comer) {
	var line []ID
	for _, other := range l.came {
		if other.placed {
			line = append(line, other.ID)
		}
	}
	rank, n := slices.Index(line, c.ID), len(line)
	c.told = l.m.now
	l.m.tell(c.ID, &wire.Sum{
		Kind: wire.SumPlace, Name: l.name, Attempt: l.attempt, Rank: uint32(rank), Size: uint32(n),
		Next: string(line[(rank+1)%n]), Previous: string(line[(rank+n-1)%n]),
	})
}

// commit lets all use the sum.
func (l *lead) commit() {
	l.m.group = nil
	for _, c := range l.came {
		if c.placed {
			l.m.group = append(l.m.group, c.ID)
		}
	}
	l.m.leader = l.m.self
	l.release(l.attempt)
}

// release ends the sum: those use the result of an attempt who have it.
func (l *lead) release(attempt uint64) {
	over := ended{attempt: attempt}
	l.m.over.Add(l.name, over)
	own := false
	for _, c := range l.came {
		if c.ID == l.m.self {
			own = true
			continue
		}
		status := &wire.Sum{Name: l.name, Attempt: c.attempt, Stage: uint8(c.stage), Term: c.term}
		l.m.tell(c.ID, over.answer(status))
	}
	s := l.m.open[l.name]
	s.lead = nil
	if own && s.own != nil {
		s.own.hear(l.m.self, over.answer(s.own.status()))
	}
}

// fault ends the sum for all, and for one that has not come.
func (l *lead) fault(code uint8, detail string, also ...ID) {
	l.m.over.Add(l.name, ended{why: code, detail: detail})
	for _, c := range l.came {
		also = append(also, c.ID)
	}
	for _, id := range also {
		l.m.tell(id, &wire.Sum{Kind: wire.SumFault, Name: l.name, Op: code, Detail: detail})
	}
	l.m.open[l.name].lead = nil
}

// tick asks again, and goes on without those who do not come.
func (l *lead) tick() {
	for _, c := range slices.Clone(l.came) {
		if l.m.now-c.heard >= silence {
			l.drop(c.ID)
		}
	}
	l.advance()
	waited := l.m.now - l.changed
	s := l.m.open[l.name]
	switch {
	case s == nil || s.lead != l || l.running || waited < l.wait:
	case !l.informed():
		if l.inquire(); waited >= l.wait+unanswered {
			l.fault(codeOf(ErrTooFew), "whether they have made the sum is not said by "+shorts(l.silent()))
		}
	case slices.ContainsFunc(l.came, func(c comer) bool { return !l.ready(c) }):
	case len(l.came) >= max(l.least, 1):
		l.begin()
	default:
		l.fault(codeOf(ErrTooFew), fmt.Sprintf("%d have come within %s of the last, %d are needed; missing of the members: %s",
			len(l.came), l.wait, l.least, shorts(l.missing())))
	}
}
