package stateserver

import (
	"cmp"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// placeTurn is for how long a joiner keeps its place while others wait for one.
	placeTurn = 10 * time.Second
	// waitingFor is how long a refused joiner counts as waiting; joiners ask again four
	// times in it.
	waitingFor = 2 * time.Second
	// maxWaiting bounds the waiting joiners that are remembered; beyond it, no block of
	// addresses has more of them than others.
	maxWaiting = 256
)

// places are the places of joiners that copy the model from this peer. They are few, so
// nobody may keep one for long. An identity has one place. When all are taken, a joiner from
// the block of addresses with the most places gives way to one from a block with fewer, and
// a joiner that has had its place for placeTurn gives way to the one that has waited
// longest. Copied slices stay valid, so a joiner that gave way goes on in its next turn.
type places struct {
	most    int
	mu      sync.Mutex
	held    map[transport.PeerID]*place
	waiting *simplelru.LRU[transport.PeerID, *waiter]
	served  *simplelru.LRU[string, time.Time] // when a block last had a place given
}

func newPlaces(most int) places {
	waiting, _ := simplelru.NewLRU[transport.PeerID, *waiter](maxWaiting, nil) // fails of sizes that are not positive
	served, _ := simplelru.NewLRU[string, time.Time](maxWaiting, nil)
	return places{most: most, held: make(map[transport.PeerID]*place), waiting: waiting, served: served}
}

// place is the place of one joiner.
type place struct {
	peer  transport.PeerID
	block string
	yield func() // ends its copy; does not wait
	since time.Time
}

// waiter is a joiner that waits for a place.
type waiter struct {
	block       string
	since, last time.Time // when it asked first and last
}

// enter takes a place, until leave.
func (p *places) enter(at *place, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.since = now
	if old := p.held[at.peer]; old != nil { // the peer has lost that conversation
		at.since = old.since
		old.yield()
		p.held[at.peer] = at
		return true
	}
	w := p.wait(at, now)
	free := p.most - len(p.held)
	if p.before(w, now) >= max(free, 1) || free <= 0 && !p.displace(at, now) {
		return false
	}
	p.waiting.Remove(at.peer)
	p.held[at.peer] = at
	p.served.Add(at.block, now)
	return true
}

// wait notes that a joiner waits.
func (p *places) wait(at *place, now time.Time) *waiter {
	w, ok := p.waiting.Get(at.peer)
	if !ok || now.Sub(w.last) > waitingFor {
		w = &waiter{since: now}
		if ok || p.makeRoom(at.block, now) {
			p.waiting.Add(at.peer, w)
		}
	}
	w.block, w.last = at.block, now
	return w
}

// makeRoom tells whether one more joiner of a block may wait. If too many wait, the newest
// from the block with the most gives way to one of another block.
func (p *places) makeRoom(block string, now time.Time) bool {
	if p.waiting.Len() < maxWaiting {
		return true
	}
	count := map[string]int{}
	for _, w := range p.waiting.Values() {
		count[w.block]++
	}
	var out transport.PeerID
	var last *waiter
	for _, id := range p.waiting.Keys() {
		w, _ := p.waiting.Peek(id)
		if now.Sub(w.last) > waitingFor {
			return p.waiting.Remove(id) // it waits no more
		}
		if last == nil || cmp.Or(cmp.Compare(count[w.block], count[last.block]), w.since.Compare(last.since)) > 0 {
			out, last = id, w
		}
	}
	return count[block]+1 < count[last.block] && p.waiting.Remove(out)
}

// before is the number of waiting joiners whose turn comes before that of w: those of blocks with
// fewer places, then of blocks whose last place is longer ago, then those that have waited longer.
func (p *places) before(w *waiter, now time.Time) (n int) {
	for _, other := range p.waiting.Values() {
		if other == w || now.Sub(other.last) > waitingFor {
			continue
		}
		if cmp.Or(cmp.Compare(p.of(other.block), p.of(w.block)), p.sent(other.block).Compare(p.sent(w.block)), other.since.Compare(w.since)) < 0 {
			n++
		}
	}
	return n
}

// sent is when a block was last given a place, the zero time if that is not remembered.
func (p *places) sent(block string) time.Time {
	at, _ := p.served.Peek(block)
	return at
}

// of is the number of places of a block.
func (p *places) of(block string) (n int) {
	for _, other := range p.held {
		if other.block == block {
			n++
		}
	}
	return n
}

// displace takes a place from the joiner that must give way and has had it longest, if
// there is one.
func (p *places) displace(at *place, now time.Time) bool {
	var out *place
	for _, other := range p.held {
		must := p.of(other.block) > p.of(at.block)+1 || now.Sub(other.since) >= placeTurn
		if must && (out == nil || other.since.Before(out.since)) {
			out = other
		}
	}
	if out == nil {
		return false
	}
	delete(p.held, out.peer)
	out.yield()
	return true
}

// leave gives a place up, unless another joiner has it already.
func (p *places) leave(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[at.peer] == at {
		delete(p.held, at.peer)
	}
}

// count is the number of joiners that have a place.
func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}
