package orders

import (
	"sync"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
)

// will is the effect of the operator's known messages.
type will struct {
	begun  Course // the course without orders
	course atomic.Pointer[Course]
	ended  atomic.Pointer[string] // why the run was stopped

	mu     sync.Mutex
	orders orderlog.Orders
	gate   chan struct{}           // closed when trainers may go on; nil while they may
	over   bool                    // trainers are no longer held
	heard  map[control.Kind]uint64 // the sequence of the last message of changes, by kind
}

func (w *will) wants(order orderlog.Order) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.orders.Wants(order)
}

// obey keeps a message and carries it out; total is the flock's steps. It returns false if
// another goroutine has done so already.
func (w *will) obey(order orderlog.Order, command control.Command, total uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.orders.Wants(order) {
		return false
	}
	w.orders.Take(order)
	switch command.Kind {
	case control.Pause, control.Resume:
		w.hold()
	case control.Stop:
		w.ended.Store(&w.newest(wire.ControlStop).Why)
		w.hold()
	case control.SetSchedule, control.SetPace, control.SetWork:
		w.plan(total)
	}
	return true
}

// unheard are the changes of members that were said after the last message about them that was known here.
func (w *will) unheard(c control.Command) (changes []control.Change) {
	if c.Kind != control.SetMembers && c.Kind != control.SetDuties {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range c.Changes {
		if n.Since > w.heard[c.Kind] {
			changes = append(changes, n)
		}
	}
	if w.heard == nil {
		w.heard = make(map[control.Kind]uint64)
	}
	w.heard[c.Kind] = max(w.heard[c.Kind], c.Sequence)
	return changes
}

// newest is the newest command of a kind that takes effect at once; zero if there is
// none. The lock is held.
func (w *will) newest(kind wire.ControlKind) *control.Command {
	order, ok := w.orders.Newest(kind)
	if !ok {
		return &control.Command{}
	}
	command, _ := control.CommandOf(order.Control) // it was validated before it was kept
	return &command
}

// hold closes or opens the gate by the newest pause or resume. The lock is held.
func (w *will) hold() {
	paused := !w.over && w.ended.Load() == nil && w.newest(wire.ControlHold).Kind == control.Pause
	switch {
	case paused && w.gate == nil:
		w.gate = make(chan struct{})
	case !paused && w.gate != nil:
		close(w.gate)
		w.gate = nil
	}
}

// plan finds the course at a step of the flock. The lock is held, or no other goroutine runs yet.
func (w *will) plan(total uint64) *Course {
	c := courseAt(total, &w.orders, w.begun)
	w.course.Store(&c)
	return &c
}

// begin sets the course without orders.
func (w *will) begin(begun Course, total uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = begun
	w.plan(total)
}

// All are the bytes of the operator's messages that still count.
func (w *will) All() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.orders.All()
}

// Held is closed when trainers may go on; nil while they may.
func (w *will) Held() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gate
}

// Release lets all trainers go on from now on: the run is over.
func (w *will) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.hold()
}

// Stopped tells whether the operator has ended the run, and why.
func (w *will) Stopped() (why string, stopped bool) {
	if said := w.ended.Load(); said != nil {
		return *said, true
	}
	return "", false
}

// At is the course at a step of the flock.
func (w *will) At(total uint64) *Course {
	c := w.course.Load()
	if total < c.next {
		return c
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plan(total)
}

// Reached is the course at the share of the flock's work that another peer has announced.
// own is this peer's count, which may differ a little.
func (w *will) Reached(progress float64, own, participants uint64) Course {
	w.mu.Lock()
	defer w.mu.Unlock()
	return courseReached(progress, own, participants, &w.orders, w.begun)
}
