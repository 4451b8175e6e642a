// Package tasks starts goroutines that somebody who closes waits for.
package tasks

import "sync"

// Group is goroutines that are waited for. Once that has begun, none is started any more,
// so none can outlive it. The zero value is ready.
type Group struct {
	mu     sync.Mutex
	ending bool
	group  sync.WaitGroup
}

// Spawn runs do on a goroutine of its own. It reports false if it is too late.
func (g *Group) Spawn(do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ending {
		g.group.Go(do)
	}
	return !g.ending
}

// End lets no task start from now on, and waits for those that have.
func (g *Group) End() {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	g.group.Wait()
}
