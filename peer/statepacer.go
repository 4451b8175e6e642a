package peer

import (
	"sync"
	"time"
)

// Bounds of the pauses that a donor makes between slices.
const (
	// maxPause bounds the pause that an exchange under way is given.
	maxPause = 100 * time.Millisecond
	// rateBurst is for how long the bytes that Rate allows may be saved up.
	rateBurst = 250 * time.Millisecond
)

// pacer spreads what goes to newcomers over time. All of them share one.
type pacer struct {
	rate float64 // bytes a second; 0 is no bound

	mu   sync.Mutex
	free time.Time // when what was sent so far has been paid for
}

// pause is how long to wait after so many bytes, which took so long to send: as the
// rate asks for, and as long again as they took if there are others to yield to.
func (p *pacer) pause(bytes int, took time.Duration, yield bool, now time.Time) time.Duration {
	var wait time.Duration
	if yield {
		wait = min(took, maxPause)
	}
	if p.rate == 0 {
		return wait
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-rateBurst); p.free.Before(earliest) {
		p.free = earliest
	}
	p.free = p.free.Add(seconds(float64(bytes) / p.rate))
	return max(wait, p.free.Sub(now))
}

// busy tells whether an exchange is under way.
func (u *underway) busy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all) > 0
}
