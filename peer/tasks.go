package peer

import "sync"

// tasks are goroutines that a closing peer waits for. Once it waits, none is
// started any more, so none can outlive it. The zero value is ready.
type tasks struct {
	mu     sync.Mutex
	ending bool
	group  sync.WaitGroup
}

// spawn runs do on a goroutine of its own. It reports false if it is too late.
func (t *tasks) spawn(do func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ending {
		t.group.Go(do)
	}
	return !t.ending
}

// end lets no task start from now on, and waits for those that have.
func (t *tasks) end() {
	t.mu.Lock()
	t.ending = true
	t.mu.Unlock()
	t.group.Wait()
}
