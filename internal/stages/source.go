package stages

import (
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Source sends micro-batches of a member's own rows into the first stage. One goroutine at a time uses it.
type Source struct {
	sender
	// Asks: it sends micro-batches for their outputs.
	Asks bool
	// PerRound is how many micro-batches it makes in each round (Config.Rounds); 0: there are no rounds.
	PerRound int
	self     topology.PeerID
	window   int
	made     []*own // that are not back yet
	named    uint64 // the next ID
	round    uint64
	begun    bool // it is in a round
	here     int  // made in this round
}

// own is a micro-batch of a Source.
type own struct {
	leg
	id ID
}

// NewSource makes a Source that has at most window micro-batches on their way at once (0: 1). Its numbers begin at first,
// which is to be so far from that of an earlier life of the member that none is used twice.
func NewSource(self topology.PeerID, window int, first uint64) *Source {
	return &Source{sender: newSender(first), self: self, window: max(window, 1), named: first}
}

// Counts tell what became of its micro-batches.
func (s *Source) Counts() Counts { return s.counts }

// Room is how many more micro-batches may be made now.
func (s *Source) Room() int {
	room := s.window - len(s.made)
	if s.PerRound > 0 {
		room = min(room, s.PerRound-s.here)
		if !s.begun {
			room = 0
		}
	}
	return room
}

// Rests tells whether all that it makes in this round is back, or lost: it waits for the next.
func (s *Source) Rests() bool {
	return s.PerRound > 0 && (!s.begun || s.here >= s.PerRound) && len(s.made) == 0
}

// Round begins a round.
func (s *Source) Round(round uint64) { s.begun, s.round, s.here = true, round, 0 }

// Make names a new micro-batch and sends it on.
func (s *Source) Make(now time.Duration) (ID, []Action) {
	id := ID{Source: s.self, Number: s.named, Asks: s.Asks, Round: s.round}
	s.named++
	s.here++
	s.counts.Came++
	s.made = append(s.made, &own{leg: leg{waits: true}, id: id})
	return id, s.goOn(now, nil)
}

// Members says who holds the first stage now.
func (s *Source) Members(now time.Duration, members []topology.PeerID) []Action {
	s.set(members)
	return s.goOn(now, nil)
}

// Answer is what a member says of a micro-batch that was sent to it under a number. With Done, id says which it is, if it is
// waited for.
func (s *Source) Answer(now time.Duration, from topology.PeerID, number uint64, answer Answer, load Load) (id ID, do []Action) {
	l, ended := s.answered(now, from, number, answer, load)
	if ended {
		at := slices.IndexFunc(s.made, func(o *own) bool { return &o.leg == l })
		if answer == Done {
			id = s.made[at].id
		}
		do = s.finish(s.made[at], answer == Done, do)
	}
	return id, s.goOn(now, do)
}

// Broken says that nothing will be heard of what was sent to a member under a number.
func (s *Source) Broken(now time.Duration, number uint64) []Action {
	s.broken(now, number)
	return s.Tick(now)
}

// finish is for a micro-batch that is back, or lost.
func (s *Source) finish(o *own, done bool, do []Action) []Action {
	if done {
		s.counts.Done++
	} else {
		s.counts.Lost++
	}
	s.end(&o.leg)
	s.made = slices.DeleteFunc(s.made, func(other *own) bool { return other == o })
	return append(do, Action{Kind: Release, ID: o.id})
}

// Tick looks for answers that are overdue.
func (s *Source) Tick(now time.Duration) (do []Action) {
	for _, o := range slices.Clone(s.made) {
		if s.overdue(now, &o.leg) {
			do = s.finish(o, false, do)
		}
	}
	return s.goOn(now, do)
}

// Next is when Tick is to be called; false if nothing is waited for.
func (s *Source) Next(now time.Duration) (at time.Duration, any bool) {
	for _, o := range s.made {
		at, any = o.sooner(now, at, any)
	}
	return at, any
}

func (s *Source) goOn(now time.Duration, do []Action) []Action {
	for _, o := range s.made {
		if to, number, ok := s.send(now, &o.leg); ok {
			do = append(do, Action{Kind: Send, ID: o.id, To: to, Number: number})
		}
	}
	return do
}
