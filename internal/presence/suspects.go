package presence

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// A report by gossip that a member is dead is an unsigned hint. A member that disappears
// without announcing its departure stays in this peer's view until it has failed to answer
// over the transport.

const (
	// maxSuspects bounds the members that are probed at a time; one more counts as dead at
	// once.
	maxSuspects = 256
	// suspectEvery is the time between two probes of a member that answers although gossip
	// calls it dead.
	suspectEvery = 5 * time.Second
)

// Finding is the result of a probe.
type Finding struct {
	Member transport.PeerID
	Gone   bool
}

// suspects are the members that gossip calls dead.
type suspects struct {
	known map[transport.PeerID]*suspect
	found chan Finding
}

type suspect struct {
	asking bool
	gone   bool // it did not answer
	ask    time.Time
}

func newSuspects() suspects { return suspects{found: make(chan Finding)} }

// among takes the missing members, probes those that are due, and returns those not yet
// decided. It forgets all others: they are back.
func (s *suspects) among(missing []transport.Record, now time.Time, ask func(transport.PeerID) bool) (inQuestion []transport.Record) {
	known := make(map[transport.PeerID]*suspect, len(missing))
	room := maxSuspects
	for _, r := range missing {
		if s.known[r.Peer] != nil {
			room--
		}
	}
	for _, r := range missing {
		one := s.known[r.Peer]
		switch {
		case r.Flags&(flock.Leaving|flock.Over) != 0, one != nil && one.gone, one == nil && room <= 0:
			continue
		case one == nil:
			one = &suspect{}
			room--
		}
		if !one.asking && !now.Before(one.ask) {
			one.asking = ask(r.Peer)
		}
		known[r.Peer] = one
		inQuestion = append(inQuestion, r)
	}
	s.known = known
	return inQuestion
}

// answered takes a finding. It returns false if the member is no longer a suspect.
func (s *suspects) answered(f Finding, now time.Time) bool {
	one := s.known[f.Member]
	if one == nil {
		return false
	}
	one.asking, one.gone, one.ask = false, f.Gone, now.Add(suspectEvery)
	return true
}

// due tells whether a suspect is to be probed again.
func (s *suspects) due(now time.Time) bool {
	for _, one := range s.known {
		if !one.asking && !now.Before(one.ask) {
			return true
		}
	}
	return false
}
