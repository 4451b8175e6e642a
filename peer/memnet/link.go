package memnet

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// Link describes each path between two peers, the same in both directions: the
// path of Open, and that of every lane, has Delay, Bandwidth and Loss to itself.
// Negative values count as zero.
type Link struct {
	// Delay is the time a byte is under way, one way.
	Delay time.Duration
	// Bandwidth is the bytes per second of each direction; 0 is unlimited.
	Bandwidth float64
	// Loss is the probability that a segment of at most SegmentSize bytes is lost.
	// A stream is reliable, so a loss shows as time: the segment is sent again a
	// round trip and RetransmitWait later, pays its bandwidth again, and all that
	// follows it on its path waits for it. A segment that is lost
	// MaxRetransmits times over breaks its stream, as TCP gives up.
	Loss float64
}

const (
	// SegmentSize is the largest number of bytes that travels as one.
	SegmentSize = 16 << 10
	// RetransmitWait is what a sender waits for an acknowledgement, beyond the
	// round trip, before it sends a segment again.
	RetransmitWait = 10 * time.Millisecond
	// MaxRetransmits is how often a segment is sent again before its stream breaks.
	MaxRetransmits = 8
)

// never is the arrival time of what is held back by a cut link.
const never = time.Duration(math.MaxInt64)

// cable is all that joins two peers. Its lock guards every path and everything in
// the streams on them; nobody waits while holding it.
type cable struct {
	net  *Network
	ends pair

	mu      sync.Mutex
	link    Link
	cut     bool
	healed  chan struct{} // closed when a cut link heals
	paths   [1 + transport.MaxLane]*path
	faults  [2]faults     // by the side that sends
	dice    [2]*rand.Rand // of lost packets, by the side that sends
	streams []*stream     // open ones in the order of opening
}

// path is one connection between two peers: [0] carries from the low peer to the
// high one, [1] back.
type path [2]flow

func newCable(n *Network, ends pair) *cable {
	return &cable{net: n, ends: ends, link: n.link, healed: make(chan struct{})}
}

// path returns the connection that a lane is; 0 is that of Open.
func (c *cable) path(lane int) *path {
	if c.paths[lane] == nil {
		c.paths[lane] = &path{
			{random: c.net.random(c.ends.low, c.ends.high, lane)},
			{random: c.net.random(c.ends.high, c.ends.low, lane)},
		}
	}
	return c.paths[lane]
}

func (c *cable) side(from transport.PeerID) int {
	if from == c.ends.low {
		return 0
	}
	return 1
}

func (c *cable) setLink(l Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = l
	now := c.net.now()
	for _, p := range c.paths {
		if p != nil {
			p[0].settle(now)
			p[1].settle(now)
		}
	}
}

// setCut cuts or heals. A cut holds back what has not arrived; healing sends it
// again, oldest stream first.
func (c *cable) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == cut {
		return
	}
	c.cut = cut
	now := c.net.now()
	if cut {
		for _, s := range c.streams {
			s.hold(now)
		}
		return
	}
	close(c.healed)
	c.healed = make(chan struct{})
	for _, p := range c.paths {
		if p != nil {
			p[0], p[1] = flow{random: p[0].random}, flow{random: p[1].random}
		}
	}
	for _, s := range c.streams {
		s.ends[0].release(now)
		s.ends[1].release(now)
	}
}

// limit makes a fault happen once a peer has sent a number of bytes.
func (c *cable) limit(from transport.PeerID, bytes int64, then fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	side := c.side(from)
	c.faults[side].left, c.faults[side].then = max(bytes, 0), then
	c.sent(side, 0, c.net.now())
}

// sent counts bytes and lets the fault that they lead to happen.
func (c *cable) sent(side, size int, now time.Duration) {
	f := &c.faults[side]
	if f.left -= int64(size); f.then == nothing || f.left > 0 {
		return
	}
	then := f.then
	f.then = nothing
	if then == stalls {
		f.stalled = true
		return
	}
	for _, s := range c.streams {
		s.ends[side].tear(now)
	}
}

func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// flow is the traffic of one direction of a path. The bytes of a busy period are
// counted from its start, so that rounding never adds up.
type flow struct {
	random *rand.Rand
	start  time.Duration // when the busy period began
	bytes  int64         // sent in it
	free   time.Duration // when the last of them has left
	last   time.Duration // latest arrival so far: the connection keeps order
}

func (f *flow) send(link Link, now time.Duration, size int) (time.Duration, bool) {
	delay := max(link.Delay, 0)
	at := f.transmit(link.Bandwidth, now, size) + delay
	for lost := 0; size > 0 && link.Loss > 0 && f.random.Float64() < link.Loss; lost++ {
		if lost == MaxRetransmits {
			return 0, false
		}
		at = f.transmit(link.Bandwidth, at+delay+RetransmitWait, size) + delay
	}
	f.last = max(f.last, at)
	return f.last, true
}

// transmit returns when size bytes that are ready at a time have left.
func (f *flow) transmit(bandwidth float64, ready time.Duration, size int) time.Duration {
	if ready >= f.free {
		f.start, f.bytes, f.free = ready, 0, ready
	}
	if bandwidth > 0 {
		f.bytes += int64(size)
		f.free = f.start + time.Duration(math.Round(float64(f.bytes)/bandwidth*float64(time.Second)))
	}
	return f.free
}

// settle starts a new busy period where the old one ends, for another bandwidth.
func (f *flow) settle(now time.Duration) {
	f.start, f.bytes = max(now, f.free), 0
	f.free = f.start
}

// fault is what goes wrong in one direction of a cable.
type fault int

const (
	nothing fault = iota
	breaks
	stalls
)

// faults are what goes wrong in one direction of a cable, and when.
type faults struct {
	left    int64 // bytes until then happens, unless that is nothing
	then    fault
	stalled bool
}

func (f *faults) room() int {
	if f.then == nothing {
		return math.MaxInt
	}
	return int(min(f.left, math.MaxInt))
}
