package pipeline

import (
	"sync"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// places bound what members may ask of this one at once: all of them together, and each. Safe for concurrent use.
type places struct {
	all, each int
	lock      sync.Mutex
	taken     map[transport.PeerID]int
}

func newPlaces(all, each int) *places {
	return &places{all: all, each: each, taken: map[transport.PeerID]int{}}
}

// take takes a place for what a member asks, if there is one.
func (p *places) take(by transport.PeerID) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	all := 0
	for _, n := range p.taken {
		all += n
	}
	if all >= p.all || p.taken[by] >= p.each {
		return false
	}
	p.taken[by]++
	return true
}

// free gives the place back.
func (p *places) free(by transport.PeerID) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.taken[by]--; p.taken[by] == 0 {
		delete(p.taken, by)
	}
}
