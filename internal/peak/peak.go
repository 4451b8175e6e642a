// Package peak keeps the most that was seen of something.
package peak

import "sync/atomic"

// Peak is the largest of the numbers that were noted, 0 before the first. It is safe
// for concurrent use; its zero value is ready.
type Peak struct{ most atomic.Int64 }

// Note takes a number.
func (p *Peak) Note(n int64) {
	for {
		most := p.most.Load()
		if n <= most || p.most.CompareAndSwap(most, n) {
			return
		}
	}
}

// Load is the largest number so far.
func (p *Peak) Load() int64 { return p.most.Load() }
