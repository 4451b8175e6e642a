package peer

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// What gossip says of a member, that it is dead, is a hint that nobody has signed. A
// member that goes missing without a farewell stays in this peer's view until it has
// failed to answer over the transport.

const (
	// maxSuspects bounds the members that are in question at a time; one more is
	// believed dead at once.
	maxSuspects = 256
	// suspectEvery is the time between two questions to one that answers although
	// gossip calls it dead.
	suspectEvery = 5 * time.Second
)

// suspect is a member that gossip calls dead.
type suspect struct {
	asking bool
	gone   bool // it did not answer
	ask    time.Time
}

// finding is what a question to a suspect has shown.
type finding struct {
	member seam.PeerID
	gone   bool
}

// withSuspects adds those who have gone missing to the members that gossip knows, for
// as long as they are in question. Those who said goodbye are let go.
func (l *loop) withSuspects(members []seam.Record) []seam.Record {
	p := l.peer
	missing := p.flock.missing(members)
	asked := make(map[seam.PeerID]*suspect, len(missing))
	for _, r := range missing {
		if archive, ok := p.membership.(seam.Archive); ok {
			if last, known := archive.Last(r.Peer); known && last.Incarnation == r.Incarnation {
				p.flock.hear(last)
				r = last
			}
		}
		s := l.suspects[r.Peer]
		switch {
		case r.Flags&(flagLeaving|flagOver) != 0, s != nil && s.gone:
			continue
		case s == nil && len(asked) >= maxSuspects:
			continue
		case s == nil:
			s = &suspect{}
		}
		asked[r.Peer] = s
		members = append(members, r)
		l.question(r.Peer, s)
	}
	l.suspects = asked
	return members
}

// question asks a suspect whether it is there, if it is its turn.
func (l *loop) question(member seam.PeerID, s *suspect) {
	p := l.peer
	if s.asking || time.Now().Before(s.ask) {
		return
	}
	s.asking = p.transfers.spawn(func() {
		p.notify(notice{found: &finding{member: member, gone: p.gone(member)}})
	})
}

// found takes the outcome of a question. An exchange with a member that is gone is
// broken off at once, before it stalls.
func (l *loop) found(f finding) {
	s := l.suspects[f.member]
	if s == nil {
		return // it is back
	}
	s.asking, s.gone, s.ask = false, f.gone, time.Now().Add(suspectEvery)
	if !f.gone {
		l.log.Info("a member that gossip calls dead answers; it stays", zap.String("peer", string(f.member)))
		return
	}
	l.events = append(l.events, notice{event: averaging.Event{Kind: averaging.PeerLost, Peer: topology.PeerID(f.member)}})
	l.refresh()
}

// inQuestion tells whether a suspect is to be asked again.
func (l *loop) inQuestion(now time.Time) bool {
	for _, s := range l.suspects {
		if !s.asking && !now.Before(s.ask) {
			return true
		}
	}
	return false
}
