package sums

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Stage is a participant's stage in its last attempt.
type Stage uint8

const (
	// Waiting for a place.
	Waiting Stage = iota
	// Placed: it sends and receives.
	Placed
	// Holding: it has the sum, but may not use it yet.
	Holding
	// Told: it has a masked sum, and has told the seed of its own mask.
	Told
)

const (
	// standstill is the time without progress after which an attempt is given up.
	standstill = time.Minute
	// longestWait is how long a participant waits because of longer timeouts of others, maxStalls how
	// many attempts may stand still for each member, and leastRate the least bytes a second of an
	// attempt.
	longestWait = 10 * time.Minute
	maxStalls   = 3
	leastRate   = 64 << 10
	// noteEvery is how often the missing members are reported.
	noteEvery = 10 * time.Second
	// hearsay is in the place of the attempt of a gathering of which a member has only heard that it is over.
	hearsay = 1
)

// part is this member's part in a sum.
type part struct {
	Call
	m        *Machine
	stage    Stage
	attempt  uint64 // the last in which it had a place
	placedBy ID
	leader   ID     // the coordinator that got its last status, and whose COMMIT counts
	term     uint32 // grows with each change of leader, and each question
	current  *attempt
	moments
	came    uint64      // bytes
	suspect ID          // the member with which the attempt is broken, "" if it is not
	absent  map[ID]bool // members that say that they take no part
	early   map[ID]*early
	hiding
}

// early are shares of one member, of one attempt, that came before this member's PLACE.
type early struct {
	shares []wire.Share
	bytes  uint64
}

// moments are times of a part.
type moments struct {
	began    time.Duration
	reported time.Duration
	moved    time.Duration // when numbers last came
	noted    time.Duration // when the missing members were last reported
	asked    time.Duration // when others were last asked whether they take part
}

// follow finds this member's coordinator, and tells whether it has changed. The coordinator that
// gave the present place stays, while it is present and does not resign: it may send COMMIT at
// any moment. A new coordinator begins a new term, so that a COMMIT on its way from the old one
// no longer counts.
func (p *part) follow() (changed bool) {
	placed := p.stage != Waiting && p.m.here(p.leader) && !p.m.excused[p.leader]
	if leader := p.m.Coordinator(); !placed && p.leader != leader {
		p.leader = leader
		p.term++
		return true
	}
	return false
}

// leaves handles a member's message that it does not coordinate.
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

// status is the STATUS for the coordinator.
func (p *part) status() *wire.Sum {
	w := &wire.Sum{
		Kind: wire.SumStatus, Name: p.Name, Op: uint8(p.Op), Stage: uint8(p.stage), Attempt: p.attempt, Length: p.length(),
		Least: uint32(p.Least), Timeout: uint32(p.Timeout.Milliseconds()), Term: p.term, Size: uint32(len(p.Data)), Value: p.Value,
	}
	if p.current != nil {
		w.Rank, w.Next = p.current.progress(), string(p.current.numbers.spoiler)
	}
	if p.Op.masked() {
		w.Masks = p.hiding.brings(p)
	}
	return w
}

// report repeats this member's status.
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

// note reports the member that this one waits for: the next sender, or else the coordinator.
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

// lasts is how long an attempt of size participants may take, if one moves so many bytes (for a
// gathering, at each step): long links take some tenths of a second.
func lasts(op Op, bytes uint64, size int) time.Duration {
	if op.shape() == topology.Tree { // as many steps one after the other, though of different members
		op = op.shapeless()
	}
	steps := taken(op, size)
	if op == Gather {
		bytes *= uint64(steps)
	}
	return standstill + time.Duration(steps)*time.Second + time.Duration(bytes)*time.Second/leastRate
}

// moves is the most bytes that a participant sends, and receives, in an attempt at numbers: as often as they are long,
// by halving and doubling twice and once more for two that are not in the core; by a tree once up and twice down.
func moves(length uint64) uint64 { return 3 * wire.NumberSize * min(length, MaxLength) }

// limit is how long a participant waits for a present coordinator that does not end the sum. An
// honest one has ended it by then.
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

// receive takes a coordinator's message.
func (p *part) receive(from ID, w *wire.Sum) {
	switch {
	case from != p.leader: // a former or future coordinator: it learns who coordinates, or this member does
	case w.Kind == wire.SumCommit && w.Term == p.term:
		p.commit(from, w)
	case w.Kind == wire.SumPlace:
		p.place(from, w)
	case w.Kind == wire.SumReveal && p.Op.masked():
		p.hiding.reveal(p, w)
	case w.Kind == wire.SumVoid && w.Attempt == p.attempt && p.stage != Told:
		p.m.fact(Fact{What: Voided, Sum: p.Name, Who: []ID{from}, Why: "who coordinates says so"})
		p.stage, p.current, p.suspect = Waiting, nil, ""
		p.report()
	case w.Kind == wire.SumFault && (w.Op != codeOf(ErrOver) || w.Attempt == p.attempt): // else it answers what this one said before it had its place
		p.emit(Outcome{Result: &Result{Name: p.Name, Err: reason(w.Op, p.Name, w.Detail)}})
		e := ended{failed: w.Op != codeOf(ErrOver) && w.Op != codeOf(ErrUnreachable), why: w.Op, detail: w.Detail}
		if p.Op == Gather && w.Op == codeOf(ErrOver) {
			e.attempt = hearsay
		}
		p.m.end(p.m.open[p.Name], e)
	}
}

// place begins an attempt. The attempts of one coordinator grow: a PLACE that is not beyond the
// last comes late.
func (p *part) place(from ID, w *wire.Sum) {
	late := w.Attempt == p.attempt || w.Attempt < p.attempt && from == p.placedBy || w.Attempt >= maxAttempt
	wrong := w.Size == 0 || w.Size > uint32(len(p.m.members)) || !p.distinct(w.Partners) || w.Size == 2 && len(w.Partners) != 1
	if late || wrong || w.Size == 2 && !p.secluded(from, ID(w.Partners[0])) {
		return // it says it again
	}
	next := newAttempt(&p.Call, w, p.emit)
	if next == nil || p.Op.masked() && !p.hiding.takes(p, next, w) {
		return
	}
	p.attempt, p.placedBy, p.stage, p.suspect, p.moved, p.current = w.Attempt, from, Placed, "", p.m.now, next
	if next.begin(); p.Op.moved() {
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
			p.breakOff(sender) // its shares for this attempt were not kept
		}
	}
	p.close()
}

// distinct tells whether partners are different members: one that occurred twice would see more of this
// member's numbers.
func (p *part) distinct(partners []string) bool {
	all := slices.Sorted(slices.Values(append([]string{string(p.m.self)}, partners...)))
	strange := slices.ContainsFunc(all, func(id string) bool { return !p.m.here(ID(id)) })
	return !strange && len(slices.Compact(all)) == len(partners)+1
}

// secluded tells whether this member may sum with a single other member, which then sees its
// numbers: only after all other members have said themselves that they take no part. Another
// coordinator's statement about them is not enough.
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
	case p.m.now-p.asked >= p.m.times.Retransmit: // however often that PLACE is repeated
		p.asked = p.m.now
		for _, id := range here {
			p.m.tell(id, &wire.Sum{Kind: wire.SumAsk, Name: p.Name, Stage: 1})
		}
		p.m.fact(Fact{What: Apart, Sum: p.Name, Who: append([]ID{with}, here...)})
	}
	return false
}

// absents notes that a member takes no part in the sum, once it has had time to call.
func (p *part) absents(id ID) {
	if p.absent == nil {
		p.absent = make(map[ID]bool)
	}
	p.absent[id] = p.m.now-p.began >= min(p.Timeout, longestWait)
}

func (p *part) emit(o Outcome) { p.m.out = append(p.m.out, o) }

// share takes numbers: of this attempt, or of the next, whose PLACE may come later.
func (p *part) share(from ID, s *wire.Share) {
	switch {
	case p.Op.moved():
	case s.Attempt == p.attempt && p.stage == Placed && p.current.has(from):
		p.take(from, s)
	case s.Attempt > p.attempt:
		p.keep(from, s)
	} // all others belong to an attempt that was given up
}

// keep stores numbers until their PLACE comes: of each member those of its last attempt, and of all
// members no more than one attempt can have. If there are more, the member with the most loses its
// numbers: a member without a place cannot push out one that has a place.
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
		return // the attempt then stands still, and is given up
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

// take takes the next share of a partner. Any other share breaks the attempt off: an earlier one was lost,
// or came too long before the PLACE.
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

// lost gives up an attempt in which a message to or from a partner may be lost.
func (p *part) lost(member ID) {
	if p.stage != Waiting && p.suspect == "" && p.current.has(member) {
		p.breakOff(member)
	}
}

// breakOff reports the attempt as broken to the coordinator, until that gives it up.
func (p *part) breakOff(with ID) {
	p.suspect = with
	p.report()
}

// commit lets the caller use the sum.
func (p *part) commit(from ID, w *wire.Sum) {
	if p.stage < Holding || w.Attempt != p.attempt {
		return
	}
	if p.current.size != 2 {
		p.m.pair = ""
	}
	result := &Result{Name: p.Name, Vector: p.current.numbers.values, Blocks: p.current.blocks.each, Peers: p.current.size, Attempt: p.attempt, Value: w.Value}
	if p.Op.masked() {
		result.Vector, result.Err = p.hiding.open(p, w.Masks)
	}
	if i := slices.IndexFunc(result.Vector, func(v float64) bool { return v-v != 0 }); i >= 0 {
		result = &Result{Name: p.Name, Err: reason(codeOf(ErrNotFinite), p.Name, fmt.Sprintf("number %d is %g%s", i, result.Vector[i], w.Detail))}
	}
	p.emit(Outcome{Result: result})
	if p.m.leader != from && from != p.m.self {
		p.m.leader = from
		s := p.m.open[p.Name]
		s.own = nil // it sends nothing more about it
		p.m.led()
	}
	e := ended{attempt: w.Attempt, value: w.Value, detail: w.Detail}
	if errors.Is(result.Err, ErrOver) {
		e = ended{why: codeOf(ErrOver)} // it cannot tell others of a result
	}
	p.m.over.Add(p.Name, e)
	p.m.seeds.Add(p.Name, w.Masks)
	if s := p.m.open[p.Name]; s != nil {
		p.m.end(s, e)
	}
}
