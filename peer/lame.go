package peer

import (
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

const (
	// lameFor is for how long a partner to whom a lane has failed is spoken to over
	// one connection only.
	lameFor = 10 * time.Minute
	// maxLame bounds the partners that are remembered; once there are more, all are
	// tried anew.
	maxLame = 1024
)

// lame remembers to whom further lanes do not work, though they can be opened. The
// zero value is ready.
type lame struct {
	mu    sync.Mutex
	until map[seam.PeerID]time.Time
}

func (l *lame) note(partner seam.PeerID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= maxLame {
		l.until = make(map[seam.PeerID]time.Time)
	}
	l.until[partner] = now.Add(lameFor)
}

func (l *lame) has(partner seam.PeerID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[partner].After(now)
}

// lanesTo is the number of lanes to propose to a partner.
func (p *Peer) lanesTo(partner seam.PeerID) int {
	if p.lame.has(partner, time.Now()) {
		return 1
	}
	return p.config.Exchange.Lanes
}
