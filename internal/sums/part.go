package sums

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// Stage is where a participant is in its last attempt.
type Stage uint8

const (
	// Waiting for a place.
	Waiting Stage = iota
	// Placed: it sends and takes.
	Placed
	// Holding: it has the sum, and may not use it yet.
	Holding
)

const (
	// standstill is after what time an attempt is given up of which nobody has more.
	standstill = time.Minute
	// longestWait is for how long a participant waits for the patience of others, if its own is less,
	// maxStalls how many attempts may stand still for each member, and leastRate what bytes a second
	// an attempt has to move.
	longestWait = 10 * time.Minute
	maxStalls   = 3
	leastRate   = 64 << 10
	// noteEvery is how often it is told who is waited for.
	noteEvery = 10 * time.Second
)

// part is this member's part of a sum.
type part struct {
	Call
	m        *Machine
	stage    Stage
	attempt  uint64 // the last in which it had a place
	placedBy ID
	leader   ID     // whom it has told last where it is, and takes COMMIT of
	term     uint32 // how often it has told another, or has been asked
	current  *attempt
	moments
	came    uint64      // bytes
	suspect ID          // with whom the attempt is broken, "" if it is not
	absent  map[ID]bool // who says that it has no part in the sum
	early   map[ID]*early
}

// early are shares of one member for a place that this one is not told of yet, of one attempt.
type early struct {
	shares []wire.Share
	bytes  uint64
}

// moments are times of a part.
type moments struct {
	began    time.Duration
	reported time.Duration
	moved    time.Duration // when numbers came last
	noted    time.Duration // when it was told last who is waited for
	asked    time.Duration // when others were last whether they have a part
}

// follow finds who coordinates the sum for this member, and reports whether that is another than
// before. Who gave it the place that it has does so while it is here and says nothing else: it
// may let the sum count at any moment. A new term begins with another: no word that was on its
// way then lets the sum count any more.
func (p *part) follow() (changed bool) {
	placed := p.stage != Waiting && p.m.here(p.leader) && !p.m.excused[p.leader]
	if leader := p.m.Coordinator(); !placed && p.leader != leader {
		p.leader = leader
		p.term++
		return true
	}
	return false
}

// leaves is for when one says that it does not coordinate.
func (p *part) leaves(leader ID) {
	if p.leader == leader {
		if p.leader = ""; p.m.Coordinator() != leader {
			p.report()
		}
	}
}

// giveUp ends the sum for this member, if the coordinator does not.
func (p *part) giveUp() {
	s, code := p.m.open[p.Name], codeOf(ErrTooFew)
	detail := fmt.Sprintf("%s coordinates, and has brought it to no end within %s", p.leader.Short(), p.limit())
	if s.lead != nil {
		s.lead.fault(code, detail)
	}
	p.m.tell(p.leader, &wire.Sum{Kind: wire.SumLeft, Name: p.Name, Attempt: p.attempt})
	p.emit(Outcome{Result: &Result{Name: p.Name, Err: reason(code, p.Name, detail)}})
	p.m.end(s, ended{why: code, detail: detail})
}

// status is what the coordinator is told.
func (p *part) status() *wire.Sum {
	w := &wire.Sum{
		Kind: wire.SumStatus, Name: p.Name, Op: uint8(p.Op), Stage: uint8(p.stage), Attempt: p.attempt, Length: p.length(),
		Least: uint32(p.Least), Timeout: uint32(p.Timeout.Milliseconds()), Term: p.term, Size: uint32(len(p.Data)), Value: p.Value,
	}
	if p.current != nil {
		w.Rank, w.Next = p.current.progress(), string(p.current.numbers.spoiler)
	}
	return w
}

// report says again where this member is.
func (p *part) report() {
	p.reported = p.m.now
	p.follow()
	p.note()
	p.m.tell(p.leader, p.status())
	if p.suspect != "" {
		w := &wire.Sum{Kind: wire.SumBroken, Name: p.Name, Attempt: p.attempt, Next: string(p.suspect)}
		if p.Op == Gather && p.current.blocks.excess >= 0 {
			w.Rank, w.Size = uint32(p.current.blocks.excess), uint32(p.current.size)
		}
		p.m.tell(p.leader, w)
	}
}

// note tells whom this member waits for: whoever hands it numbers, or else coordinates.
func (p *part) note() {
	who, why := p.leader, "for its word"
	if p.stage == Placed {
		who, why = cmp.Or(p.current.awaits(), p.leader), "for numbers"
	}
	if last := max(p.began, p.moved, p.noted); p.m.now-last >= noteEvery && who != p.m.self {
		p.noted = p.m.now
		p.m.fact(Fact{What: Waits, Sum: p.Name, Who: []ID{who}, Why: why})
	}
}

// lasts is how long an attempt of so many participants may take in which one moves so many bytes, of a
// gathering at each step: far links take some tenths of a second.
func lasts(op Op, bytes uint64, size int) time.Duration {
	_, steps := schedule(op, 0, size, 0)
	if op == Gather {
		bytes *= uint64(len(steps))
	}
	return standstill + time.Duration(len(steps))*time.Second + time.Duration(bytes)*time.Second/leastRate
}

// moves is how many bytes a participant sends at most in an attempt at numbers, and takes: two halves for
// others, beside its own.
func moves(length uint64) uint64 { return 3 * wire.NumberSize * min(length, MaxLength) }

// limit is for how long a participant waits for a coordinator that is here and brings the sum to
// no end. One that is honest has ended it by then.
func (p *part) limit() time.Duration {
	timeout := max(p.Timeout, longestWait)
	if s := p.m.open[p.Name]; s != nil && s.lead != nil {
		timeout = max(timeout, s.lead.came.timeout())
	}
	bytes := moves(p.length())
	if p.Op == Gather {
		bytes = min(p.came+uint64(len(p.Data)), MaxGathered)
	}
	return timeout + unanswered + maxStalls*(lasts(p.Op, bytes, len(p.m.members))+time.Duration(len(p.m.members))*standstill)
}

// receive takes what a coordinator says.
func (p *part) receive(from ID, w *wire.Sum) {
	switch {
	case from != p.leader: // one that was, or will be: it is told who is, or this one hears of it
	case w.Kind == wire.SumCommit && w.Term == p.term:
		p.commit(from, w)
	case w.Kind == wire.SumPlace:
		p.place(from, w)
	case w.Kind == wire.SumVoid && w.Attempt == p.attempt:
		p.m.fact(Fact{What: Voided, Sum: p.Name, Who: []ID{from}, Why: "who coordinates says so"})
		p.stage, p.current, p.suspect = Waiting, nil, ""
		p.report()
	case w.Kind == wire.SumFault && (w.Op != codeOf(ErrOver) || w.Attempt == p.attempt): // else it answers what this one said before it had its place
		p.emit(Outcome{Result: &Result{Name: p.Name, Err: reason(w.Op, p.Name, w.Detail)}})
		p.m.end(p.m.open[p.Name], ended{failed: w.Op != codeOf(ErrOver) && w.Op != codeOf(ErrUnreachable), why: w.Op, detail: w.Detail})
	}
}

// place begins an attempt. Those of one coordinator grow: one that is not beyond the last comes
// late.
func (p *part) place(from ID, w *wire.Sum) {
	late := w.Attempt == p.attempt || w.Attempt < p.attempt && from == p.placedBy || w.Attempt >= maxAttempt
	wrong := w.Size == 0 || w.Size > uint32(len(p.m.members)) || !p.distinct(w.Partners) || w.Size == 2 && len(w.Partners) != 1
	if late || wrong || w.Size == 2 && !p.secluded(from, ID(w.Partners[0])) {
		return // it says it again
	}
	next := newAttempt(&p.Call, w, p.emit)
	if next == nil {
		return
	}
	p.attempt, p.placedBy, p.stage, p.suspect, p.moved, p.current = w.Attempt, from, Placed, "", p.m.now, next
	if next.begin(); p.Op == Moved {
		p.emit(Outcome{Moving: &Moving{Name: p.Name, Attempt: p.attempt, part: p, a: next}})
	}
	early := p.early
	p.early = nil
	for _, sender := range slices.Sorted(maps.Keys(early)) {
		shares := early[sender].shares
		for i := range shares {
			p.share(sender, &shares[i])
		}
		if shares[0].Attempt > p.attempt && p.current.has(sender) {
			p.breakOff(sender) // what it sent for this one has not been kept
		}
	}
	p.close()
}

// distinct tells whether partners are members, and others: one that stood twice would hear more of this
// member's numbers.
func (p *part) distinct(partners []string) bool {
	all := slices.Sorted(slices.Values(append([]string{string(p.m.self)}, partners...)))
	strange := slices.ContainsFunc(all, func(id string) bool { return !p.m.here(ID(id)) })
	return !strange && len(slices.Compact(all)) == len(partners)+1
}

// secluded tells whether this member may sum with one other alone, which hears its numbers then: not
// before all other members have said that they have no part in the sum. What another coordinator
// says of them is not enough.
func (p *part) secluded(leader, with ID) bool {
	if !p.Op.private() || leader == p.m.self || p.m.pair == with {
		return true
	}
	here := slices.DeleteFunc(slices.Clone(p.m.members), func(id ID) bool {
		return id == p.m.self || id == with || p.m.excused[id] || p.absent[id]
	})
	switch {
	case len(here) == 0:
		p.m.pair = with
		return true
	case p.m.now-p.asked >= p.m.times.Retransmit: // however often it is told of that place
		p.asked = p.m.now
		for _, id := range here {
			p.m.tell(id, &wire.Sum{Kind: wire.SumAsk, Name: p.Name, Stage: 1})
		}
		p.m.fact(Fact{What: Apart, Sum: p.Name, Who: append([]ID{with}, here...)})
	}
	return false
}

// absents notes that a member has no part in the sum, once it would have called.
func (p *part) absents(id ID) {
	if p.absent == nil {
		p.absent = make(map[ID]bool)
	}
	p.absent[id] = p.m.now-p.began >= min(p.Timeout, longestWait)
}

func (p *part) emit(o Outcome) { p.m.out = append(p.m.out, o) }

// share takes numbers: of this attempt, or of the next, whose place may come after them.
func (p *part) share(from ID, s *wire.Share) {
	switch {
	case p.Op == Moved:
	case s.Attempt == p.attempt && p.stage == Placed && p.current.has(from):
		p.take(from, s)
	case s.Attempt > p.attempt:
		p.keep(from, s)
	} // others are of an attempt that was given up
}

// keep has numbers wait for the place that they are for: of each member those of the last attempt, and
// of all no more than may come in one. Where there are more, those go of whom there are most: who has
// no place to send them from does not push out the one that has.
func (p *part) keep(from ID, s *wire.Share) {
	e := p.early[from]
	switch {
	case e != nil && s.Attempt < e.shares[0].Attempt:
		return
	case p.early == nil:
		p.early = make(map[ID]*early)
	}
	if e == nil || s.Attempt > e.shares[0].Attempt {
		e = &early{}
		p.early[from] = e
	}
	room := moves(p.length())
	if p.Op == Gather {
		room = MaxGathered
	}
	if most := room/wire.MaxShare + 2*uint64(len(p.m.members)); uint64(len(e.shares)) >= most {
		return // the attempt stands still, and is given up
	}
	kept := *s
	kept.Data = bytes.Clone(s.Data)
	e.shares, e.bytes = append(e.shares, kept), e.bytes+uint64(len(s.Data))
	together := uint64(0)
	for _, other := range p.early {
		together += other.bytes
	}
	if together > room {
		delete(p.early, slices.MaxFunc(slices.Sorted(maps.Keys(p.early)), func(a, b ID) int { return cmp.Compare(p.early[a].bytes, p.early[b].bytes) }))
	}
}

// take takes what comes next of a partner. Anything else breaks the attempt off: something before it was of
// a place that this member was not told of in time, or is lost.
func (p *part) take(from ID, s *wire.Share) {
	if !p.current.take(from, s) {
		p.breakOff(from)
		return
	}
	p.came += uint64(len(s.Data))
	p.moved = p.m.now
	p.close()
}

// close tells the coordinator once the sum is here.
func (p *part) close() {
	if p.stage == Placed && p.current.complete() {
		p.stage = Holding
		p.report()
	}
}

// lost gives an attempt up in which something may be lost that comes from a partner or goes to it.
func (p *part) lost(member ID) {
	if p.stage != Waiting && p.suspect == "" && p.current.has(member) {
		p.breakOff(member)
	}
}

// breakOff tells the coordinator that the attempt has come to nothing, until it is given up.
func (p *part) breakOff(with ID) {
	p.suspect = with
	p.report()
}

// commit lets the caller use the sum.
func (p *part) commit(from ID, w *wire.Sum) {
	if p.stage != Holding || w.Attempt != p.attempt {
		return
	}
	if p.current.size != 2 {
		p.m.pair = ""
	}
	result := &Result{Name: p.Name, Vector: p.current.numbers.values, Blocks: p.current.blocks.each, Peers: p.current.size, Attempt: p.attempt, Value: w.Value}
	if i := slices.IndexFunc(result.Vector, func(v float64) bool { return v-v != 0 }); i >= 0 {
		result = &Result{Name: p.Name, Err: reason(codeOf(ErrNotFinite), p.Name, fmt.Sprintf("number %d is %g%s", i, result.Vector[i], w.Detail))}
	}
	p.emit(Outcome{Result: result})
	if p.m.leader != from {
		p.m.leader = from
		s := p.m.open[p.Name]
		s.own = nil // it says nothing more of it
		p.m.led()
	}
	e := ended{attempt: w.Attempt, value: w.Value, detail: w.Detail}
	p.m.over.Add(p.Name, e)
	if s := p.m.open[p.Name]; s != nil {
		p.m.end(s, e)
	}
}
