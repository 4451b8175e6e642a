package tasks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Life is what has been begun of something that is to be closed, so that it can be ended in order.
type Life struct {
	Started    time.Time
	Running    context.Context // ends when Close has nothing left to wait for
	stop       context.CancelFunc
	Working    context.Context // ends when what is under way is broken off
	BreakOff   context.CancelFunc
	Closing    chan struct{}  // closed when Close begins
	Tasks      Group          // that come to their end by themselves
	Background sync.WaitGroup // what goes on as long as Running
	handlers   []func()       // End what others may begin
	Leaving    atomic.Bool    // Close has been called
	Closed     chan struct{}  // closed when the first Close has done its work
	Fault      error          // that Close returns
}

// NewLife starts the time, and the contexts.
func NewLife() *Life {
	l := &Life{Started: time.Now(), Closing: make(chan struct{}), Closed: make(chan struct{})}
	l.Running, l.stop = context.WithCancel(context.Background())
	l.Working, l.BreakOff = context.WithCancel(l.Running)
	return l
}

// Now is the time since the start.
func (l *Life) Now() time.Duration { return time.Since(l.Started) }

// Spawn begins a task that is to end with its context, unless it is too late.
func (l *Life) Spawn(work func(context.Context)) bool {
	return l.Tasks.Spawn(func() { work(l.Working) })
}

// Leave begins to close. It reports false if that was begun before, and waits then for its end.
func (l *Life) Leave() bool {
	if l.Leaving.CompareAndSwap(false, true) {
		return true
	}
	<-l.Closed
	return false
}

// End waits for all that goes on by itself, and for the background, which it stops.
func (l *Life) End() {
	l.Tasks.End()
	l.stop()
	l.Background.Wait()
}

// IsClosing tells whether Close has begun.
func (l *Life) IsClosing() bool {
	select {
	case <-l.Closing:
		return true
	default:
		return false
	}
}

// IsClosed tells whether Close has done its work.
func (l *Life) IsClosed() bool {
	select {
	case <-l.Closed:
		return true
	default:
		return false
	}
}

// Ends has stop called when others are to begin nothing more.
func (l *Life) Ends(stop func()) { l.handlers = append(l.handlers, stop) }

// Stop calls what Ends was given but for the first so many, the last first.
func (l *Life) Stop(but int) {
	for len(l.handlers) > but {
		last := len(l.handlers) - 1
		l.handlers[last]()
		l.handlers = l.handlers[:last]
	}
}
