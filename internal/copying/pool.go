package copying

import (
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// maxAskers is at how many state servers one slice may be asked for at once: at one, and at
// a second one if the first is slow.
const maxAskers = 2

// stealLeast is how much sooner a second state server must be expected to send a slice to
// be asked for it too.
const stealLeast = 50 * time.Millisecond

// pool shares the slices of a state out among state servers. It sees numbers only. Each
// slice is asked of one state server; if that one is slow, and another has nothing left to
// do, the other is asked too. Safe for concurrent use.
type pool struct {
	mu            sync.Mutex
	slices        []slice
	left          int // slices without a source
	next          int // no slice before it is free
	askers        map[*asker]struct{}
	retransmitted uint64
	changed       chan struct{} // holds a token when there may be work for an idle asker
}

// slice is the state of one slice: its source, once it is verified, and how many state
// servers are being asked for it.
type slice struct {
	source transport.PeerID
	asked  int
	before bool // it was asked for before
}

// asker asks one state server for slices.
type asker struct {
	server transport.PeerID
	queue  []int // asked for and not here yet, in order
	pace   ewma.Mean
	last   time.Time // when the last slice came, or the first was asked for
	window int       // most slices in queue
}

// paceSmoothing is the weight of the newest slice in the pace of a state server.
const paceSmoothing = 0.2

func newPool(slices int) *pool {
	return &pool{slices: make([]slice, slices), left: slices, askers: make(map[*asker]struct{}), changed: make(chan struct{}, 1)}
}

// enter adds a state server, until leave.
func (p *pool) enter(server transport.PeerID, window int) *asker {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := &asker{server: server, window: window}
	p.askers[a] = struct{}{}
	return a
}

// leave gives up the slices that were asked of a state server and have not come.
func (p *pool) leave(a *asker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range a.queue {
		p.release(i)
	}
	a.queue = nil
	delete(p.askers, a)
	p.wake()
}

// release withdraws one request for a slice. The lock is held.
func (p *pool) release(i int) {
	p.slices[i].asked--
	p.next = min(p.next, i)
}

// wake tells one idle asker to look again. The lock is held.
func (p *pool) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// take chooses slices to ask a state server for, once at most half of its window is under
// way: free ones, else those of a state server that is much slower. It appends them to into
// as consecutive runs [first, last), in the order in which to ask.
func (p *pool) take(a *asker, now time.Time, into [][2]int) [][2]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(a.queue) > a.window/2 {
		return into
	}
	if len(a.queue) == 0 {
		a.last = now
	}
	old := len(into)
	for len(a.queue) < a.window {
		i := p.free()
		if i < 0 {
			i = p.steal(a, now)
		}
		if i < 0 {
			break
		}
		s := &p.slices[i]
		if s.before {
			p.retransmitted++
		}
		s.asked++
		s.before = true
		a.queue = append(a.queue, i)
		if n := len(into); n > old && into[n-1][1] == i {
			into[n-1][1]++
		} else {
			into = append(into, [2]int{i, i + 1})
		}
	}
	return into
}

// free is the first slice that is neither here nor asked for, or -1. The lock is held.
func (p *pool) free() int {
	for ; p.next < len(p.slices); p.next++ {
		if s := &p.slices[p.next]; s.source == "" && s.asked == 0 {
			return p.next
		}
	}
	return -1
}

// steal is the last slice asked of the state server that will take the longest, if a would
// get it much sooner; or -1. The lock is held.
func (p *pool) steal(a *asker, now time.Time) int {
	var slowest *asker
	for other := range p.askers {
		if other != a && (slowest == nil || other.remaining(now) > slowest.remaining(now)) {
			slowest = other
		}
	}
	if slowest == nil || slowest.remaining(now) < 2*a.remaining(now)+2*a.perSlice(now)+stealLeast {
		return -1
	}
	for k := len(slowest.queue) - 1; k >= 0; k-- {
		i := slowest.queue[k]
		if s := &p.slices[i]; s.source == "" && s.asked < maxAskers {
			return i
		}
	}
	return -1
}

// perSlice is about the time from one slice of a state server to the next, or for how long
// it has been silent, if that is longer.
func (a *asker) perSlice(now time.Time) time.Duration {
	pace := time.Duration(a.pace.Value() * float64(time.Second))
	if len(a.queue) == 0 {
		return pace
	}
	return max(pace, now.Sub(a.last))
}

// remaining is about how long a state server will take for what it has been asked for.
func (a *asker) remaining(now time.Time) time.Duration {
	return time.Duration(len(a.queue)) * a.perSlice(now)
}

// deliver takes the verified slice that a state server was to send next. It calls keep to
// store the slice, unless another state server was first, and returns the result of keep.
func (p *pool) deliver(a *asker, now time.Time, keep func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := a.queue[0]
	a.queue = a.queue[:copy(a.queue, a.queue[1:])]
	a.pace.Add(now.Sub(a.last).Seconds(), paceSmoothing)
	a.last = now
	s := &p.slices[i]
	p.release(i)
	if s.source != "" {
		return true
	}
	if !keep() {
		return false
	}
	s.source = a.server
	if p.left--; p.left == 0 {
		p.wake()
	}
	return true
}

// disown forgets the slices of a state server that lied: they are asked for again.
func (p *pool) disown(server transport.PeerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slices {
		if s := &p.slices[i]; s.source == server {
			s.source = ""
			p.left++
			p.next = min(p.next, i)
		}
	}
	p.wake()
}

// done tells whether every slice is here.
func (p *pool) done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left == 0
}

// waitsFor tells whether a state server has owed a slice, or its first answer, for slowDonor.
func (p *pool) waitsFor(server transport.PeerID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.askers {
		if a.server == server {
			return len(a.queue) > 0 && now.Sub(a.last) >= slowDonor
		}
	}
	return true
}

// remaining is the number of slices that are not here.
func (p *pool) remaining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// result counts the slices of each state server, and those that were asked for again.
func (p *pool) result() (sources map[transport.PeerID]int, retransmitted uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sources = make(map[transport.PeerID]int)
	for _, s := range p.slices {
		if s.source != "" {
			sources[s.source]++
		}
	}
	return sources, p.retransmitted
}
