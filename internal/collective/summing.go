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

// Kinds of messages of machines that sum, beside those of package sums. Other kinds belong to the machines.
const (
	// MessageAck answers a message that needs no other answer.
	MessageAck uint8 = 4
	// MessageRetry asks again for chunks of attempt Round that were refused because they came early.
	MessageRetry uint8 = 9
)

// Summed is the end of a sum: the buffer Sum holds the result, unless there is an error.
type Summed struct {
	Attempt uint64
	Value   float64 // the least value of the participants
	Err     error
	LeftOut bool // the others make the sum without this peer, which came too late, or has no working link to others
}

// Summer is a machine that sums.
type Summer interface {
	// Load puts this peer's part of the sum into the buffer Sum; where the transfer says Add, it adds that of the
	// transfer's part of the values to what has come.
	Load(Transfer)
	// Summed is called at the end of each sum that was called.
	Summed(Summed)
}

// Summing is a peer's part in the sums of the flock's buffers Sum: it carries out the decisions of package
// sums with messages and transfers.
type Summing struct {
	*Flights
	attempt attempt
	summer  Summer
	members *Members
	machine *sums.Machine
	seen    uint64                        // version of the members that the machine knows
	leads   topology.PeerID               // who coordinates, if the owner says so
	length  int                           // of Sum
	rounds  bool                          // codecs round
	op      sums.Op                       // by which shape it is summed
	name    string                        // of the sum that this peer has called, "" if none
	began   time.Duration                 // since when members must send messages: the begin of a sum, or of another coordinator
	from    int                           // the values from here on are ready to be summed
	pace    pacing                        // of the sum under way
	led     topology.PeerID               // the coordinator at the last Tick, "" if no sum was under way
	takes   map[topology.PeerID]string    // the last sum of each participant
	kept    map[topology.PeerID]*wire.Sum // messages about a sum that this peer has not called yet
}

// NewSumming makes the summing part of a machine. Sums are by halving and doubling, or over another shape, the same
// at all members; a star has no sum of its own.
func NewSumming(flights *Flights, members *Members, summer Summer, shape topology.Shape) *Summing {
	s := &Summing{Flights: flights, attempt: attempt{Flights: flights}, summer: summer, members: members, op: sums.Moved.Over(shape)}
	s.Restart("")
	return s
}

// Restart forgets all sums. leads coordinates from now on; if it is empty, the first member does.
func (s *Summing) Restart(leads topology.PeerID) {
	s.machine = sums.New(s.Self, sums.Times{Retransmit: s.Slice(), Silence: s.Deadline})
	s.takes, s.kept = make(map[topology.PeerID]string), make(map[topology.PeerID]*wire.Sum)
	s.seen, s.leads, s.name = 0, leads, ""
	s.attempt.enter(nil)
}

// SetLength implements Sized.
func (s *Summing) SetLength(values int, rounds bool) { s.length, s.rounds = values, rounds }

// Ready notes that this peer's values from one on are ready, those before it are not: the sum goes on with these. At
// first all are.
func (s *Summing) Ready(from int) {
	s.from = from
	s.pace.ready(s.Now, from)
	s.load()
}

// Under tells whether a sum called by this peer is under way.
func (s *Summing) Under() bool { return s.name != "" }

// Busy tells whether Tick is to be called.
func (s *Summing) Busy() bool { return s.machine.Busy() }

// Placed tells whether this peer has a place in an attempt, as far as it knows.
func (s *Summing) Placed() bool { return s.attempt.place != nil }

// Coordinator is the member that gives out the places.
func (s *Summing) Coordinator() topology.PeerID {
	s.see()
	return s.machine.Coordinator()
}

// Expect makes the next sum wait for a member that took no part in the last one, if this peer coordinates.
func (s *Summing) Expect(id topology.PeerID) { s.machine.Expect(id) }

// Has notes that this peer has the final result, of this attempt: questions about any sum are answered with it.
func (s *Summing) Has(attempt uint64) { s.machine.Has(attempt) }

// Over tells whether a sum is known to have ended; a late caller is told how it ended.
func (s *Summing) Over(name string) bool { return s.machine.Over(name) }

// Participants are the participants of the last sum, if this peer coordinated it.
func (s *Summing) Participants() []topology.PeerID { return s.machine.Group() }

// see tells the machine the members, if they have changed.
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
	maps.DeleteFunc(s.takes, func(id topology.PeerID, _ string) bool { return !s.members.Has(id) })
	maps.DeleteFunc(s.kept, func(id topology.PeerID, _ *wire.Sum) bool { return !s.members.Has(id) })
}

// Call begins a sum of all that call it; it waits so long for members that have not. After a sum that failed for all,
// call another.
func (s *Summing) Call(sum string, timeout time.Duration, value float64) {
	s.see()
	name := sum
	for try := 2; s.machine.Failed(name); try++ {
		name = fmt.Sprintf("%s, try %d", sum, try)
	}
	s.name, s.began, s.attempt.place = name, s.Now, nil
	s.machine.Call(s.Now, sums.Call{Name: name, Op: s.op, Length: s.length, Rounds: s.rounds, Least: 1, Timeout: timeout, Value: value})
	s.carryOut()
	kept := s.kept
	s.kept = make(map[topology.PeerID]*wire.Sum)
	for _, from := range slices.Sorted(maps.Keys(kept)) {
		if kept[from].Name == name {
			s.receiveSum(from, kept[from])
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

// leave gives up the transfers of a sum that is over.
func (s *Summing) leave() {
	s.name = ""
	s.attempt.enter(nil)
}

// Excuse notes that sums do not wait for a member until it takes part in one.
func (s *Summing) Excuse(id topology.PeerID) {
	s.see()
	s.machine.Excuse(s.Now, id)
	s.carryOut()
}

// Silent tells whether a member has sent nothing for the deadline.
func (s *Summing) Silent(id topology.PeerID) bool { return s.Now-s.members.spoke[id] >= s.Deadline }

// Lose goes on without a peer until it sends a message.
func (s *Summing) Lose(id topology.PeerID) {
	s.members.Pass(id)
	s.Abort(id)
	s.see()
	s.machine.Broken(s.Now, id)
	s.machine.Excuse(s.Now, id)
	s.carryOut()
}

// Receive takes a message of a member, and tells whether it is about sums.
func (s *Summing) Receive(from topology.PeerID, w Message) bool {
	switch {
	case w.Sum != nil:
		s.receiveSum(from, w.Sum)
	case w.Kind == MessageRetry:
		s.attempt.ready[from] = s.Now
		s.attempt.resend(from)
	}
	return w.Sum != nil || w.Kind == MessageRetry
}

// receiveSum takes a member's message about a sum. A participant that would get no other answer gets an
// acknowledgement. If the owner has named this peer as coordinator, messages about a sum are kept until this peer
// calls that sum itself.
func (s *Summing) receiveSum(from topology.PeerID, w *wire.Sum) {
	s.see()
	if s.leads == s.Self && w.Kind == wire.SumStatus && s.name != w.Name && !s.machine.Over(w.Name) {
		s.kept[from] = w
		s.Tell(from, Message{Kind: MessageAck})
		return
	}
	said, message := len(s.actions), *w
	if w.Kind == wire.SumStatus && !s.takesPart(from, &message) {
		return
	}
	s.machine.Receive(s.Now, from, message)
	s.carryOut()
	tells := func(a Action) bool { return a.Kind == Tell && a.Peer == from }
	if w.Kind == wire.SumStatus && !slices.ContainsFunc(s.actions[said:], tells) {
		s.Tell(from, Message{Kind: MessageAck})
	}
}

// takesPart notes that a member takes part in a sum, and so in no other, and limits its demands to those of a peer of
// this run. It returns false if the member's operation or length is wrong: otherwise the sum would fail for all.
func (s *Summing) takesPart(from topology.PeerID, w *wire.Sum) bool {
	if sums.Op(w.Op) != s.op || w.Length != uint64(s.length) {
		return false
	}
	w.Least, w.Timeout = 1, min(w.Timeout, uint32(s.Deadline.Milliseconds()))
	if s.machine.Over(w.Name) {
		return true // it gets the outcome
	}
	if before := s.takes[from]; before != "" && before != w.Name {
		s.machine.Receive(s.Now, from, wire.Sum{Kind: wire.SumLeft, Name: before})
	}
	s.takes[from] = w.Name
	return true
}

// carryOut carries out the machine's outcomes.
func (s *Summing) carryOut() {
	for all := s.machine.Outcomes(); len(all) > 0; all = s.machine.Outcomes() {
		for _, o := range all {
			switch r := o.Result; {
			case o.Message != nil:
				s.Tell(o.To, Message{Sum: o.Message})
			case o.Chunk != nil && s.Placed():
				s.Send(o.To, s.attempt.carrying(*o.Chunk), false)
				s.pace.sent(s.Now)
			case o.Moving != nil && o.Moving.Name == s.name:
				s.attempt.enter(o.Moving)
				s.load()
			case r != nil && r.Name == s.name:
				s.leave()
				s.machine.Pace = s.pace.over(s.length)
				s.summer.Summed(Summed{Attempt: r.Attempt, Value: r.Value, Err: r.Err, LeftOut: r.Err != nil && !s.machine.Failed(r.Name)})
			}
		}
	}
	for _, fact := range s.machine.Facts() {
		s.Do(Action{Action: averaging.Action{Kind: Note}, Fact: &fact})
	}
}

// load loads what is ready of this peer's part. It enters an attempt once all transfers of another are over: until then
// aborted ones may change the buffer.
func (s *Summing) load() {
	a := &s.attempt
	if a.place == nil || a.loading && len(s.In) > 0 {
		return
	}
	chunks := a.place.Load(s.from)
	switch {
	case a.loading && s.from > 0:
		s.Ask(Clear)
	case a.loading:
		chunks = []sums.Chunk{{Parts: 1}}
	}
	for _, chunk := range chunks {
		s.summer.Load(a.carrying(chunk))
	}
	if a.loading {
		a.begin()
	}
	a.place.Loaded(s.Now, s.from)
	s.carryOut()
}

// Offered answers the offer of a transfer for a sum.
func (s *Summing) Offered(e Event) { s.attempt.offered(e) }

// Landing handles the end of a flight that carries a chunk. If the flight belongs to the owner instead, it
// returns the flight and true.
func (s *Summing) Landing(e Event) (f Flight, found bool) {
	f, found = s.Landed(e)
	_, ours := chunkOf(f.Transfer)
	if ours && !e.Inbound {
		s.pace.landed(s.Now, f, s.Out)
	}
	switch {
	case !found:
	case f.Aborted:
		s.load()
		return Flight{}, false
	case !ours:
		return f, true
	case !s.attempt.is(f.Transfer):
	case e.Kind == averaging.Failed && !e.Inbound && e.Reason == averaging.Unfit:
		s.Cancel()
		s.summer.Summed(Summed{Err: errors.New("the codec holds no such numbers"), LeftOut: true})
	case !s.attempt.landed(e, f):
		s.machine.Broken(s.Now, f.Peer)
	}
	s.carryOut()
	return Flight{}, false
}

// Tick retransmits what may be lost, and breaks off what takes too long. It stops waiting for members that have been
// silent for the deadline, and stops following a silent coordinator, unless the owner has named the coordinator.
func (s *Summing) Tick() {
	for f := range s.Overdue {
		s.machine.Broken(s.Now, f.Peer)
	}
	s.attempt.resend("")
	s.see()
	var leader topology.PeerID
	if s.machine.Busy() {
		leader = s.machine.Coordinator()
	}
	if leader != s.led { // they sent to the former coordinator
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
				s.machine.Excuse(s.Now, id)
			}
		}
	case s.leads == "" && silent(leader):
		s.AbortIn(With(leader))
		s.machine.Excuse(s.Now, leader) // the next coordinator has the same time
	}
}
