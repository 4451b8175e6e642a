package peer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/internal/tasks"
)

// lifetime is what has been begun of a peer, so that it can be ended in order.
type lifetime struct {
	started        time.Time
	serving        chan struct{}   // closed when others can speak to this peer, and it to them
	running        context.Context // ends when Close has nothing left to wait for
	stop           context.CancelFunc
	exchanges      context.Context // ends when exchanges in flight are broken off
	breakExchanges context.CancelFunc
	closing        chan struct{}  // closed when Close begins
	transfers      tasks.Group    // outbound exchanges and probes
	background     sync.WaitGroup // what runs as long as the peer does
	handlers       []func()       // stop the protocols' handlers
	untold         func()         // logs the counts of lines that were left out
	leaving        atomic.Bool    // Close has been called
	closed         chan struct{}  // closed when the first Close has done its work
	fault          error          // that Close returns
}

// begin starts the time, and the contexts.
func (l *lifetime) begin(untold func()) {
	l.started, l.untold = time.Now(), untold
	l.serving, l.closing, l.closed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	l.running, l.stop = context.WithCancel(context.Background())
	l.exchanges, l.breakExchanges = context.WithCancel(l.running)
}

// now is the time since the peer was started.
func (l *lifetime) now() time.Duration { return time.Since(l.started) }

// isClosing tells whether Close has begun.
func (l *lifetime) isClosing() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// isClosed tells whether Close has done its work.
func (l *lifetime) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}
