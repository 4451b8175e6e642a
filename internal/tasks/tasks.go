// Package tasks starts goroutines that Close waits for.
package tasks

import "sync"

// Group is a group of goroutines that End waits for. After End has begun, no goroutine starts, so none can outlive
// it. The zero value is ready.
type Group struct {
	mu     sync.Mutex
	ending bool
	group  sync.WaitGroup
}

// Spawn runs do on a new goroutine. It reports false after End has begun.
func (g *Group) Spawn(do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ending {
		g.group.Go(do)
	}
	return !g.ending
}

// End prevents further tasks, and waits for those that run.
func (g *Group) End() {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	g.group.Wait()
}
