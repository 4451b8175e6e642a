package peer

import (
	"cmp"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// How long a peer that has sent what no honest one sends is kept away from: the
// first time quarantineFirst, twice as long each time after, up to quarantineMost.
// After as long again without an offence it begins anew.
const (
	quarantineFirst = 30 * time.Second
	quarantineMost  = time.Hour
	// maxQuarantined bounds the peers that are remembered; the one whose time is up
	// first makes room.
	maxQuarantined = 1024
)

// quarantine remembers who has broken the rules. The zero value is ready.
type quarantine struct {
	mu      sync.Mutex
	inmates map[seam.PeerID]inmate
	// first and most stand in for quarantineFirst and quarantineMost, unless zero:
	// tests over real sockets cannot wait for those.
	first, most time.Duration
}

type inmate struct {
	until time.Time
	term  time.Duration
}

// lock keeps a peer away from now on, and returns for how long.
func (q *quarantine) lock(id seam.PeerID, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inmates == nil {
		q.inmates = make(map[seam.PeerID]inmate)
	}
	term := cmp.Or(q.first, quarantineFirst)
	if old, ok := q.inmates[id]; ok && now.Sub(old.until) < old.term {
		term = min(2*old.term, cmp.Or(q.most, quarantineMost))
	}
	q.makeRoom(id)
	q.inmates[id] = inmate{until: now.Add(term), term: term}
	return term
}

// makeRoom forgets the peer whose time is up first, if there are too many.
func (q *quarantine) makeRoom(id seam.PeerID) {
	if _, known := q.inmates[id]; known || len(q.inmates) < maxQuarantined {
		return
	}
	var first seam.PeerID
	for id, i := range q.inmates {
		if first == "" || i.until.Before(q.inmates[first].until) {
			first = id
		}
	}
	delete(q.inmates, first)
}

// left is for how much longer a peer is kept away; 0 if it is not.
func (q *quarantine) left(id seam.PeerID, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(q.inmates[id].until.Sub(now), 0)
}

// count is the number of peers that are kept away.
func (q *quarantine) count(now time.Time) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, i := range q.inmates {
		if i.until.After(now) {
			n++
		}
	}
	return n
}

// condemn keeps a partner that broke the rules away for a while, and reports it.
func (p *Peer) condemn(partner seam.PeerID, offence error) {
	term := p.quarantine.lock(partner, time.Now())
	p.counters.quarantines.Add(1)
	p.log.Warn("a partner broke the rules of the exchange and is kept away; nothing of what it sent last was applied",
		zap.String("peer", string(partner)), zap.Duration("for", term), zap.Error(offence),
		zap.String("remedy", wire.ReasonProtocol.Remedy()))
	p.hooks.quarantined(partner, term, offence)
	p.notify(notice{event: averaging.Event{Kind: averaging.Quarantined, Peer: topology.PeerID(partner), After: term}})
}
