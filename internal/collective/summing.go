package collective

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sums"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Kinds of words of those who sum, beside what package sums says. Other kinds are the machines' own.
const (
	// WordHeard answers what calls for nothing else.
	WordHeard uint8 = 4
	// WordAgain asks for what was refused in the attempt Round since it came early.
	WordAgain uint8 = 9
)

// maxEarly bounds who is remembered to have come too early: more than any has partners.
const maxEarly = 64

// ErrLeftOut is what ends a sum for a peer without which the others make it: it came too late, others could not
// sum with it, or it could not send what it had summed, as where the codec holds no such numbers.
var ErrLeftOut = errors.New("the others sum without this peer")

// Summed is a sum that is over: Sum holds it, but if there is an error.
type Summed struct {
	Attempt uint64
	Value   float64 // the least that participants have brought
	Err     error
}

// Summer is a machine that sums.
type Summer interface {
	// Load asks for this peer's part of the sum to be put into Sum.
	Load()
	// Summed is called when a sum is over that was called.
	Summed(Summed)
}

// Summing is a peer's part of the sums of what the replicas of a flock hold in Sum: what package sums decides,
// told by words and carried by transfers.
type Summing struct {
	*Flights
	summer  Summer
	members *Members
	machine *sums.Machine
	seen    uint64                            // the members that the machine knows
	leads   topology.PeerID                   // who coordinates, if the owner says so
	length  int                               // of Sum
	name    string                            // of the sum that this peer has called, "" if none
	began   time.Duration                     // since when members have had to speak: a sum, or another coordinator, has begun
	led     topology.PeerID                   // who coordinated when Tick was called last, "" if nothing was under way
	inSum   map[topology.PeerID]string        // which sum each has said last that it takes part in
	moving  *sums.Moving                      // the attempt that has begun last, nil if none has
	loading bool                              // for which this peer waits for what was aborted to be over
	early   []topology.PeerID                 // refused since this peer was not ready for them
	refused []Flight                          // by partners that were not
	ready   map[topology.PeerID]time.Duration // when they said that they are, since the attempt has begun
	heard   map[topology.PeerID]time.Duration // when each spoke last
	kept    map[topology.PeerID]*wire.Sum     // said of a sum that this peer is yet to call
}

// NewSumming makes the part of a machine.
func NewSumming(flights *Flights, members *Members, summer Summer) *Summing {
	s := &Summing{Flights: flights, summer: summer, members: members, heard: make(map[topology.PeerID]time.Duration)}
	s.Restart("")
	return s
}

// Restart forgets all sums. Who coordinates from now on is the first member if it is empty.
func (s *Summing) Restart(leads topology.PeerID) {
	s.machine = sums.New(s.Self, sums.Times{Again: s.Slice(), Silence: s.Deadline})
	s.kept, s.inSum = make(map[topology.PeerID]*wire.Sum), make(map[topology.PeerID]string)
	s.seen, s.leads, s.name, s.moving, s.loading, s.refused = 0, leads, "", nil, false, nil
}

// SetLength implements Sized.
func (s *Summing) SetLength(values int) { s.length = values }

// Under tells whether a sum is under way that this peer has called.
func (s *Summing) Under() bool { return s.name != "" }

// Busy tells whether Tick is to be called.
func (s *Summing) Busy() bool { return s.machine.Busy() }

// Placed tells whether this peer has a place in an attempt, as far as it knows.
func (s *Summing) Placed() bool { return s.moving != nil }

// Coordinator is who gives the places.
func (s *Summing) Coordinator() topology.PeerID {
	s.see()
	return s.machine.Coordinator()
}

// Expect has the next sum wait for one that took no part in the last, if this peer coordinates.
func (s *Summing) Expect(id topology.PeerID) { s.machine.Expect(id) }

// Over tells whether a sum is known to have ended: who calls it late is told how.
func (s *Summing) Over(name string) bool { return s.machine.Over(name) }

// Participants are who took part in the last sum, if this peer coordinated it.
func (s *Summing) Participants() []topology.PeerID { return s.machine.Group() }

// see tells the machine who is here, if that has changed.
func (s *Summing) see() {
	if s.seen == s.members.count {
		return
	}
	s.seen = s.members.count
	order := s.members.order
	if s.members.Has(s.leads) {
		order = append([]topology.PeerID{s.leads}, slices.DeleteFunc(slices.Clone(order), func(id topology.PeerID) bool { return id == s.leads })...)
	}
	s.machine.View(s.Now, order)
	maps.DeleteFunc(s.heard, func(id topology.PeerID, _ time.Duration) bool { return !s.members.Has(id) })
	maps.DeleteFunc(s.kept, func(id topology.PeerID, _ *wire.Sum) bool { return !s.members.Has(id) })
	maps.DeleteFunc(s.inSum, func(id topology.PeerID, _ string) bool { return !s.members.Has(id) })
}

// Call begins a sum of all who call it. Those are waited for so long who have not.
func (s *Summing) Call(name string, patience time.Duration, value float64) {
	s.see()
	s.name, s.began, s.moving = name, s.Now, nil
	s.machine.Call(s.Now, sums.Call{Name: name, Op: sums.Moved, Length: s.length, Least: 1, Patience: patience, Value: value})
	s.carryOut()
	kept := s.kept
	s.kept = make(map[topology.PeerID]*wire.Sum)
	for _, from := range slices.Sorted(maps.Keys(kept)) {
		if kept[from].Name == name {
			s.Hear(from, kept[from])
		}
	}
}

// Cancel takes this peer out of the sum under way.
func (s *Summing) Cancel() {
	if s.name != "" {
		s.machine.Cancel(s.Now, s.name)
		s.leave()
		s.carryOut()
	}
}

// leave gives up what is in flight for a sum that is over.
func (s *Summing) leave() {
	s.name, s.moving, s.loading, s.refused = "", nil, false, nil
	s.abort()
}

// abort breaks off what carries chunks. What the owner sends beside them goes on.
func (s *Summing) abort() {
	carries := func(f Flight) bool { _, does := chunkOf(f.Transfer); return does }
	s.abortOut(carries)
	s.abortIn(carries)
}

// Asleep notes that nobody is to wait for a member until it takes part in a sum.
func (s *Summing) Asleep(id topology.PeerID) {
	s.see()
	s.machine.Deaf(s.Now, id)
	s.carryOut()
}

// Spoke notes that a member has.
func (s *Summing) Spoke(id topology.PeerID) {
	s.heard[id] = s.Now
	s.members.Spoke(id)
}

// Silent tells whether a member has said nothing for the deadline.
func (s *Summing) Silent(id topology.PeerID) bool { return s.Now-s.heard[id] >= s.Deadline }

// Lose goes on without a peer until it speaks.
func (s *Summing) Lose(id topology.PeerID) {
	s.members.Pass(id)
	s.Abort(id)
	s.see()
	s.machine.Broken(s.Now, id)
	s.machine.Deaf(s.Now, id)
	s.carryOut()
}

// Hear takes what a member says of a sum. A participant that hears nothing else hears that this peer is here. Of a
// sum that this peer is to coordinate by its owner's word nobody is waited for before it calls it itself.
func (s *Summing) Hear(from topology.PeerID, w *wire.Sum) {
	s.see()
	if s.leads == s.Self && w.Kind == wire.SumStatus && s.name != w.Name && !s.machine.Over(w.Name) {
		s.kept[from] = w
		s.Tell(from, Word{Kind: WordHeard})
		return
	}
	said, word := len(s.actions), *w
	if w.Kind == wire.SumStatus && !s.takesPart(from, &word) {
		return
	}
	s.machine.Hear(s.Now, from, word)
	s.carryOut()
	tells := func(a Action) bool { return a.Kind == Tell && a.Peer == from }
	if w.Kind == wire.SumStatus && !slices.ContainsFunc(s.actions[said:], tells) {
		s.Tell(from, Word{Kind: WordHeard})
	}
}

// takesPart notes that a member takes part in a sum, and so in no other, and bounds what it asks for by what a peer of this
// run does. It reports false if it brings what none would: the sum would fail for all.
func (s *Summing) takesPart(from topology.PeerID, w *wire.Sum) bool {
	if sums.Op(w.Op) != sums.Moved || w.Length != uint64(s.length) {
		return false
	}
	w.Least, w.Patience = 1, min(w.Patience, uint32(s.Deadline.Milliseconds()))
	if s.machine.Over(w.Name) {
		return true // it is told so
	}
	if before := s.inSum[from]; before != "" && before != w.Name {
		s.machine.Hear(s.Now, from, wire.Sum{Kind: wire.SumLeft, Name: before})
	}
	s.inSum[from] = w.Name
	return true
}

func summedOf(r *sums.Result) Summed {
	if errors.Is(r.Err, sums.ErrOver) || errors.Is(r.Err, sums.ErrUnreachable) {
		r.Err = fmt.Errorf("%w: %w", ErrLeftOut, r.Err)
	}
	return Summed{Attempt: r.Attempt, Value: r.Value, Err: r.Err}
}

// carryOut does what the machine wants.
func (s *Summing) carryOut() {
	for all := s.machine.Outcomes(); len(all) > 0; all = s.machine.Outcomes() {
		for _, o := range all {
			switch {
			case o.Word != nil:
				s.Tell(o.To, Word{Sum: o.Word})
			case o.Chunk != nil && s.moving != nil:
				s.Send(o.To, s.carrying(*o.Chunk), false)
			case o.Moving != nil && o.Moving.Name == s.name:
				s.join(o.Moving)
			case o.Result != nil && o.Result.Name == s.name:
				s.leave()
				s.summer.Summed(summedOf(o.Result))
			}
		}
	}
}

// join begins an attempt, once whatever runs of another is over.
func (s *Summing) join(attempt *sums.Moving) {
	s.abort()
	s.moving, s.loading, s.refused, s.ready = attempt, true, nil, make(map[topology.PeerID]time.Duration)
	s.load()
}

// load makes ready what is summed when nothing that was aborted can change it any more.
func (s *Summing) load() {
	if !s.loading || len(s.In) > 0 {
		return
	}
	s.loading = false
	s.summer.Load()
	for _, id := range s.early {
		s.Tell(id, Word{Kind: WordAgain, Round: s.moving.Attempt})
	}
	s.early = s.early[:0]
	s.moving.Loaded(s.Now)
	s.carryOut()
}

// carrying is the transfer of a chunk.
func (s *Summing) carrying(p sums.Chunk) Transfer {
	return Transfer{From: Sum, Into: Sum, Add: p.Add, Part: p.Part, Parts: p.Parts, Round: s.moving.Attempt}
}

// chunkOf is what a transfer carries of a sum, and whether it does.
func chunkOf(t Transfer) (p sums.Chunk, does bool) {
	return sums.Chunk{Part: t.Part, Parts: t.Parts, Add: t.Add}, t.From == Sum && t.Into == Sum && t.Parts > 1
}

// Offered answers what another member wants to send for a sum.
func (s *Summing) Offered(e Event) {
	chunk, fits := chunkOf(e.Transfer)
	switch here := s.moving != nil && s.moving.Attempt == e.Transfer.Round && !s.loading; {
	case fits && here && s.moving.Accept(s.Now, e.Peer, chunk):
		s.Accept(e, 1)
	case fits && !here:
		if len(s.early) < maxEarly && !slices.Contains(s.early, e.Peer) {
			s.early = append(s.early, e.Peer)
		}
		s.Refuse(e, averaging.Round)
	default:
		s.Refuse(e, averaging.Unfit)
	}
}

// Landing handles the end of a flight that carries a chunk. It reports the flight, and that there is one, if it
// carries something of the owner's.
func (s *Summing) Landing(e Event) (f Flight, found bool) {
	f, found = s.Landed(e)
	chunk, ours := chunkOf(f.Transfer)
	switch {
	case !found:
	case f.Aborted:
		s.load()
		return Flight{}, false
	case !ours:
		return f, true
	case s.moving == nil || f.Transfer.Round != s.moving.Attempt:
	case e.Kind == averaging.Finished && e.Inbound:
		s.moving.Took(s.Now, f.Peer, chunk)
	case e.Kind == averaging.Finished:
		s.moving.Gave(s.Now, f.Peer, chunk)
	case e.Kind == averaging.Refused && (e.Reason == averaging.Round || e.Reason == averaging.Busy):
		if s.refused = append(s.refused, f); f.Began < s.ready[f.Peer] { // it crossed the word that asks for it
			s.again(f.Peer)
		}
	case e.Kind == averaging.Failed && !e.Inbound && e.Reason == averaging.Unfit:
		s.Cancel()
		s.summer.Summed(Summed{Err: ErrLeftOut})
	default:
		s.machine.Broken(s.Now, f.Peer)
	}
	s.carryOut()
	return Flight{}, false
}

// Again sends once more what a partner has refused since it came early.
func (s *Summing) Again(from topology.PeerID, attempt uint64) {
	if s.moving != nil && attempt == s.moving.Attempt {
		s.ready[from] = s.Now
		s.again(from)
	}
}

// again sends what one has refused, or anybody if that is empty.
func (s *Summing) again(to topology.PeerID) {
	s.refused = slices.DeleteFunc(s.refused, func(f Flight) bool {
		if to != "" && f.Peer != to {
			return false
		}
		s.Send(f.Peer, f.Transfer, false)
		return true
	})
}

// Tick says again what may be lost, and breaks off what takes too long. Members that have said nothing for
// the deadline are not waited for, nor is one followed that coordinates, unless the owner has said who does.
func (s *Summing) Tick() {
	for f := range s.Overdue {
		s.machine.Broken(s.Now, f.Peer)
	}
	s.again("")
	s.see()
	var leader topology.PeerID
	if s.machine.Busy() {
		leader = s.machine.Coordinator()
	}
	if leader != s.led { // they spoke to the one of before
		s.led, s.began = leader, s.Now
	}
	if leader != "" {
		s.passSilent()
		s.machine.Tick(s.Now)
	}
	s.carryOut()
}

func (s *Summing) passSilent() {
	silent := func(id topology.PeerID) bool { return s.Silent(id) && s.Now-s.began >= s.Deadline }
	switch leader := s.machine.Coordinator(); {
	case leader == s.Self:
		for id := range s.members.All {
			if silent(id) {
				s.machine.Deaf(s.Now, id)
			}
		}
	case s.leads == "" && silent(leader):
		s.AbortIn(leader)
		s.machine.Deaf(s.Now, leader) // the next has as long
	}
}
