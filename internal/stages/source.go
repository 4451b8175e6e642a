package stages

import (
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Source sends micro-batches of a member's own rows into the first stage. One goroutine at a time uses it.
type Source struct {
	self   topology.PeerID
	window int
	first  Router
	order  []ID        // that are out or wait for a member, as they were made
	ready  map[ID]bool // waits for a member
	number uint64
	counts Counts
	trip   mean
}

// NewSource makes a Source that has at most window micro-batches on their way at once (0: 1).
func NewSource(self topology.PeerID, window int) *Source {
	return &Source{self: self, window: max(window, 1), ready: map[ID]bool{}}
}

// Counts tell what became of its micro-batches.
func (s *Source) Counts() Counts { return s.counts }

// Room is how many more micro-batches may be made now.
func (s *Source) Room() int { return s.window - len(s.order) }

// Make names a new micro-batch and sends it on.
func (s *Source) Make(now time.Duration) (ID, []Action) {
	id := ID{s.self, s.number}
	s.number++
	s.counts.Came++
	s.order, s.ready[id] = append(s.order, id), true
	return id, s.goOn(now)
}

// Members says who holds the first stage now.
func (s *Source) Members(now time.Duration, members []topology.PeerID) []Action {
	s.again(s.first.Set(members))
	return s.goOn(now)
}

// Back is the answer of a member of the first stage: the micro-batch is done, or refused.
func (s *Source) Back(now time.Duration, id ID, from topology.PeerID, load Load, refused bool) []Action {
	took, out := s.first.Answered(now, id, from, load)
	at := -1
	for n, other := range s.order {
		if other == id {
			at = n
		}
	}
	switch {
	case at < 0:
		if !refused {
			s.counts.Late++
		}
		return s.goOn(now)
	case refused:
		if out {
			s.ready[id] = true
		}
		return s.goOn(now)
	}
	if out {
		s.trip.add(took)
	}
	s.first.Forget(id)
	delete(s.ready, id)
	s.order = append(s.order[:at], s.order[at+1:]...)
	s.counts.Done++
	return append(s.goOn(now), Action{Kind: Release, ID: id})
}

// Tick looks for answers that are overdue.
func (s *Source) Tick(now time.Duration) []Action {
	s.again(s.first.Overdue(now))
	return s.goOn(now)
}

// Next is when Tick is to be called; false if nothing is waited for.
func (s *Source) Next(now time.Duration) (time.Duration, bool) {
	return s.first.Next(now, len(s.ready) > 0)
}

func (s *Source) again(lost []ID) {
	for _, id := range lost {
		if !s.ready[id] {
			s.ready[id] = true
			s.counts.Again++
		}
	}
}

func (s *Source) goOn(now time.Duration) (do []Action) {
	for _, id := range s.order {
		if !s.ready[id] {
			continue
		}
		if to, ok := s.first.Choose(now, id); ok {
			delete(s.ready, id)
			s.first.Sent(now, id, to, now+s.trip.wait())
			do = append(do, Action{Kind: SendForward, ID: id, To: to})
		}
	}
	return do
}
