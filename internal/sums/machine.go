package sums

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// MaxOpen bounds the sums under way at a member, as participant or coordinator.
	MaxOpen = 256
	// maxAlone bounds the sums among them to which only one given member has come.
	maxAlone = MaxOpen / 4
	// maxOver bounds the ended sums that are remembered.
	maxOver = 4096
)

// Times are the intervals and timeouts of a machine. The zero value suits members at any distance.
type Times struct {
	// Retransmit is the interval of retransmissions: a message may be lost with its stream. Default: 1 s.
	Retransmit time.Duration
	// Silence is the time after which a silent participant is given up. Default: 20 s.
	Silence time.Duration
}

// Machine is one member's part in all sums.
type Machine struct {
	membership
	times    Times
	now      time.Duration
	open     map[string]*sum
	over     *lru.LRU[string, ended]
	seeds    *lru.LRU[string, []byte] // seeds of the masks of the last masked sums
	has      uint64                   // the attempt of the final result, if this member has it
	leads    uint32                   // how many leads there have been
	thrown   map[ID]time.Duration     // when members were thrown out of a sum
	departed time.Duration            // when a member was last gone
	pair     ID                       // the only partner of this member's sums, until a sum has others
	inward   []*wire.Sum              // to this member itself
	out      []Outcome
	news
	// Pace is what the last Moved sum took, for the next that this member coordinates.
	Pace Pace
	// Keys are this member's keys for masks; without them it takes part in no masked sum.
	Keys *mask.Keys
}

// sum is a running sum.
type sum struct {
	name string
	own  *part // this member's part, nil if it does not take part
	lead *lead // if this member coordinates
}

// New makes the machine of a member that knows no other yet.
func New(self ID, times Times) *Machine {
	over, _ := lru.NewLRU[string, ended](maxOver, nil) // fails for sizes below 1
	seeds, _ := lru.NewLRU[string, []byte](MaxOpen, nil)
	times.Retransmit, times.Silence = cmp.Or(times.Retransmit, time.Second), cmp.Or(times.Silence, 20*time.Second)
	m := &Machine{membership: newMembership(self), times: times, open: make(map[string]*sum), over: over, seeds: seeds, thrown: make(map[ID]time.Duration), departed: -outFor}
	m.View(0, []ID{self})
	return m
}

// Outcomes are the new requests of the machine, in order, since the last call. They belong to
// the caller, except the values of a share, which are valid until the next call of the
// machine.
func (m *Machine) Outcomes() []Outcome {
	for len(m.inward) > 0 {
		next := m.inward[0]
		m.inward = m.inward[1:]
		m.received(m.self, next)
	}
	out := m.out
	m.out = nil
	return out
}

// Busy tells whether a sum is under way, so that Tick must be called every Times.Retransmit.
func (m *Machine) Busy() bool { return len(m.open) > 0 }

// Call begins a sum of this member.
func (m *Machine) Call(now time.Duration, call Call) {
	m.now = now
	s := m.open[call.Name]
	switch e, over := m.over.Get(call.Name); {
	case over && e.attempt > 0:
		m.fail(&call, fmt.Errorf("sum %q: %w: each name is used once", call.Name, ErrOver))
	case over:
		m.fail(&call, reason(e.why, call.Name, e.detail))
	case call.Op.masked() && m.Keys == nil:
		m.fail(&call, fmt.Errorf("sum %q: this member has no key for masks", call.Name))
	case s != nil && s.own != nil:
		m.fail(&call, fmt.Errorf("sum %q is under way already", call.Name))
	case s == nil && len(m.open) >= MaxOpen:
		m.fail(&call, fmt.Errorf("sum %q: %d sums are under way, at most %d", call.Name, len(m.open), MaxOpen))
	default:
		s = m.sum(call.Name)
		s.own = &part{Call: call, m: m, moments: moments{began: now}}
		s.own.report()
	}
}

func (m *Machine) fail(call *Call, err error) {
	m.out = append(m.out, Outcome{Result: &Result{Name: call.Name, Err: err}})
}

// Cancel takes this member out of a sum. No result follows.
func (m *Machine) Cancel(now time.Duration, name string) {
	m.now = now
	if s := m.open[name]; s != nil && s.own != nil {
		m.tell(s.own.leader, &wire.Sum{Kind: wire.SumLeft, Name: name, Attempt: s.own.attempt})
		if s.own.stage == Told { // it may tell nothing of another attempt
			m.over.Add(name, ended{why: codeOf(ErrOver), detail: "this member gave it up when it had told the seed of its mask"})
		}
		s.own = nil
		m.tidy(s)
	}
}

// View takes the present members, this one included, in the order in which they coordinate:
// the same at all that know the same members.
func (m *Machine) View(now time.Duration, members []ID) {
	m.now = now
	if slices.Equal(members, m.members) {
		return
	}
	before := m.places
	m.see(members)
	for id := range before {
		if !m.here(id) {
			m.departed = now
		}
	}
	maps.DeleteFunc(m.thrown, func(id ID, _ time.Duration) bool { return !m.here(id) })
	for _, s := range m.open {
		if s.own != nil {
			maps.DeleteFunc(s.own.early, func(id ID, _ *early) bool {
				_, was := before[id]
				return was && !m.here(id)
			})
		}
	}
	m.led()
}

// Excuse notes that a member does not support sums, or is not waited for until it sends a message about one.
func (m *Machine) Excuse(now time.Duration, member ID) {
	m.now = now
	if !m.excuse(member) {
		return
	}
	for _, s := range m.sums() {
		if s.lead != nil {
			s.lead.drop(member)
		}
	}
	m.led()
}

// returns notes that a member supports sums.
func (m *Machine) returns(member ID) {
	if m.excused[member] {
		delete(m.excused, member)
		m.led()
	}
}

// led goes on with the present coordinator.
func (m *Machine) led() {
	now := m.Coordinator()
	for _, s := range m.sums() {
		if s.lead != nil && now != m.self {
			s.lead = nil
		}
		if s.lead != nil {
			s.lead.membersChanged()
		}
		if s.own != nil && s.own.follow() {
			s.own.report()
		}
		m.tidy(s)
	}
}

// Over tells whether a sum has ended here.
func (m *Machine) Over(name string) bool { return m.over.Contains(name) }

// Failed tells whether a sum has ended without a result for all, according to the coordinator.
func (m *Machine) Failed(name string) bool {
	e, over := m.over.Get(name)
	return over && e.failed
}

// Has notes that this member has the final result, of this attempt, from any source: it treats all sums as made.
func (m *Machine) Has(attempt uint64) { m.has = attempt }

// ended is how a sum has ended, as this member reports it to others.
func (m *Machine) ended(name string) (e ended, over bool) {
	if e, over = m.over.Get(name); m.has > 0 && e.attempt == 0 {
		return ended{attempt: m.has}, true
	}
	e.seeds, _ = m.seeds.Get(name)
	return e, over
}

// Broken notes that messages to or from a member may be lost.
func (m *Machine) Broken(now time.Duration, member ID) {
	m.now = now
	for _, s := range m.sums() {
		if s.own != nil {
			s.own.lost(member)
		}
	}
}

// Tick retransmits what may have been lost, and gives up what takes too long.
func (m *Machine) Tick(now time.Duration) {
	m.now = now
	for _, s := range m.sums() {
		if s.own != nil && now-s.own.reported >= m.times.Retransmit {
			s.own.report()
		}
		if s.lead != nil {
			s.lead.tick()
		}
		if s.own != nil && now-s.own.began >= s.own.limit() {
			s.own.giveUp()
		}
		m.tidy(s)
	}
}

// Receive takes a message of a member.
func (m *Machine) Receive(now time.Duration, from ID, w wire.Sum) {
	m.now = now
	m.received(from, &w)
}

// Share takes numbers from a member. Data is read only until it returns.
func (m *Machine) Share(now time.Duration, from ID, share wire.Share) {
	m.now = now
	if s := m.open[share.Name]; s != nil && s.own != nil { // otherwise the sum was given up
		s.own.share(from, &share)
	}
}

func (m *Machine) received(from ID, w *wire.Sum) {
	if !m.here(from) {
		return // the sender repeats it once it is a member
	}
	m.returns(from)
	s := m.open[w.Name]
	switch w.Kind {
	case wire.SumStatus:
		m.status(from, w)
	case wire.SumAsk:
		m.asked(from, w)
	case wire.SumLeader:
		if m.follow(from, ID(w.Next)); s != nil && s.own != nil {
			s.own.leaves(from)
		}
	case wire.SumLeft, wire.SumBroken, wire.SumNone, wire.SumDone:
		if s != nil && s.own != nil && w.Kind == wire.SumNone {
			s.own.absents(from)
		}
		if s != nil && s.lead != nil {
			s.lead.receive(from, w)
		}
	case wire.SumPlace, wire.SumVoid, wire.SumReveal, wire.SumCommit, wire.SumFault:
		if s != nil && s.own != nil {
			s.own.receive(from, w)
		} else if w.Kind == wire.SumPlace && !m.over.Contains(w.Name) { // the notice that this member has left was lost, or came before its status
			m.tell(from, &wire.Sum{Kind: wire.SumLeft, Name: w.Name, Attempt: w.Attempt})
		}
	}
	if s != nil {
		m.tidy(s)
	}
}

// status handles a participant's STATUS at its coordinator.
func (m *Machine) status(from ID, w *wire.Sum) {
	if e, over := m.ended(w.Name); over {
		m.tell(from, e.answer(w))
		return
	}
	if leader := m.Coordinator(); leader != m.self {
		m.tell(from, &wire.Sum{Kind: wire.SumLeader, Name: w.Name, Next: string(leader)})
		return
	}
	s := m.open[w.Name]
	if s == nil && (len(m.open) >= MaxOpen || m.alone(from) >= maxAlone) {
		return // the sender repeats it
	}
	s = m.sum(w.Name)
	if s.lead == nil {
		s.lead = newLead(m, w.Name)
	}
	s.lead.receive(from, w)
	m.tidy(s)
}

// alone is the number of sums to which only this member has come.
func (m *Machine) alone(member ID) (sums int) {
	for _, s := range m.open {
		if s.own == nil && s.lead != nil && len(s.lead.came) == 1 && s.lead.came[member] != nil {
			sums++
		}
	}
	return sums
}

// asked answers a coordinator that asks for this member's state, and a participant that asks whether this
// member takes part in the sum.
func (m *Machine) asked(from ID, w *wire.Sum) {
	answer := &wire.Sum{Kind: wire.SumNone, Name: w.Name}
	s := m.open[w.Name]
	if w.Stage > 0 { // asked by a participant
		if s == nil || s.own == nil {
			m.tell(from, answer)
		}
		return
	}
	switch e, over := m.ended(w.Name); {
	case over && (e.attempt > 0 || e.failed):
		answer.Kind, answer.Attempt, answer.Op, answer.Detail, answer.Masks = wire.SumDone, e.attempt, max(e.why, e.op()), e.detail, e.seeds
	case m.leader != "" && m.leader != from:
		answer.Kind, answer.Next = wire.SumLeader, string(m.leader)
	case s != nil && s.lead != nil:
		return // one of the two will find that it does not coordinate
	case s != nil && s.own != nil:
		if s.own.follow(); s.own.leader != from {
			return // the sender asks again; this member's coordinator may be gone by then
		}
		s.own.term++ // the old term may have been sent to a coordinator with the same id
		answer = s.own.status()
	}
	answer.Question = w.Question
	m.tell(from, answer)
}

// follow takes over who coordinates from another member: if there is no coordinator, if the former
// one says so, or if two sides of a divided network had one each; then the first in order goes on.
func (m *Machine) follow(from, leader ID) {
	if leader == m.Coordinator() || !m.here(leader) || m.excused[leader] {
		return
	}
	if m.leader == "" || from == m.leader || m.places[leader] < m.places[m.leader] {
		m.leader, m.group = leader, nil
		m.led()
	}
}

// end ends a sum at this member.
func (m *Machine) end(s *sum, e ended) {
	if !m.over.Contains(s.name) {
		m.over.Add(s.name, e)
	}
	s.own, s.lead = nil, nil
	m.tidy(s)
}

func (m *Machine) tell(to ID, w *wire.Sum) {
	if to == m.self {
		m.inward = append(m.inward, w)
		return
	}
	m.out = append(m.out, Outcome{To: to, Message: w})
}

func (m *Machine) sum(name string) *sum {
	s := m.open[name]
	if s == nil {
		s = &sum{name: name}
		m.open[name] = s
	}
	return s
}

// sums are the sums under way, sorted by name, since a map has no order.
func (m *Machine) sums() []*sum {
	return slices.SortedFunc(maps.Values(m.open), func(a, b *sum) int { return strings.Compare(a.name, b.name) })
}

// tidy removes a sum that is no longer needed here.
func (m *Machine) tidy(s *sum) {
	if s.own == nil && s.lead == nil {
		delete(m.open, s.name)
	}
}
