package replica

import "sync"

// turns hands out the turns of an exchange's order to its lanes.
type turns struct {
	mu             sync.Mutex
	next, end, all int
}

// begin starts an exchange of so many slices.
func (t *turns) begin(slices int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next, t.end, t.all = 0, slices, slices
}

// take is the next turn, and false if there is none.
func (t *turns) take() (turn int, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == t.end {
		return 0, false
	}
	t.next++
	return t.next - 1, true
}

// leave lets no further turn be taken, beyond the least number, and returns how many are left: the
// same whenever it is called again.
func (t *turns) leave(least int) (slices int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = min(t.end, max(t.next, least))
	return t.all - t.end
}

// left is how many turns are not to be taken.
func (t *turns) left() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all - t.end
}
