package tasks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Life has the goroutines and contexts of an object with a Close, and ends them in order.
type Life struct {
	Started    time.Time
	Running    context.Context // ends when Close has nothing left to wait for
	stop       context.CancelFunc
	Working    context.Context // ends when running work is to be aborted
	BreakOff   context.CancelFunc
	Closing    chan struct{}  // closed when Close begins
	Tasks      Group          // tasks that end by themselves
	Background sync.WaitGroup // goroutines that run as long as Running
	handlers   []func()       // End functions: they stop others from starting anything more
	Leaving    atomic.Bool    // Close has been called
	Closed     chan struct{}  // closed when the first Close has done its work
	Fault      error          // the result of Close
}

// NewLife starts the clock and the contexts.
func NewLife() *Life {
	l := &Life{Started: time.Now(), Closing: make(chan struct{}), Closed: make(chan struct{})}
	l.Running, l.stop = context.WithCancel(context.Background())
	l.Working, l.BreakOff = context.WithCancel(l.Running)
	return l
}

// Now is the time since the start.
func (l *Life) Now() time.Duration { return time.Since(l.Started) }

// Spawn starts a task that ends with its context. It reports false after Close has begun.
func (l *Life) Spawn(work func(context.Context)) bool {
	return l.Tasks.Spawn(func() { work(l.Working) })
}

// Leave begins to close. If that has begun before, it waits for its end and reports false.
func (l *Life) Leave() bool {
	if l.Leaving.CompareAndSwap(false, true) {
		return true
	}
	<-l.Closed
	return false
}

// End waits for all tasks, and then stops and awaits the background.
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

// IsClosed tells whether Close has ended.
func (l *Life) IsClosed() bool {
	select {
	case <-l.Closed:
		return true
	default:
		return false
	}
}

// Ends adds a function that Stop calls, which stops others from starting anything more.
func (l *Life) Ends(stop func()) { l.handlers = append(l.handlers, stop) }

// Stop calls the functions given to Ends except the first but of them, the last one first.
func (l *Life) Stop(but int) {
	for len(l.handlers) > but {
		last := len(l.handlers) - 1
		l.handlers[last]()
		l.handlers = l.handlers[:last]
	}
}
