package memnet

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Link describes the way between two peers, the same in both directions.
// Negative values count as zero.
type Link struct {
	// Delay is the time a byte is under way, one way.
	Delay time.Duration
	// Bandwidth is the bytes per second of each direction; 0 is unlimited.
	Bandwidth float64
	// Loss is the probability that a segment of at most SegmentSize bytes is lost.
	// A stream is reliable, so a loss shows as time: the segment is sent again a
	// round trip and RetransmitWait later, pays its bandwidth again, and all that
	// follows it between the two peers waits for it. A segment that is lost
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

// cable is the connection between two peers. Its lock guards both directions
// and everything in the streams on it; nobody waits while holding it.
type cable struct {
	net  *Network
	ends pair

	mu      sync.Mutex
	link    Link
	cut     bool
	healed  chan struct{} // closed when a cut link heals
	lanes   [2]lane       // [0] from the low peer to the high one
	streams []*stream     // open ones in the order of opening
}

func newCable(n *Network, ends pair) *cable {
	c := &cable{net: n, ends: ends, link: n.link, healed: make(chan struct{})}
	c.lanes[0].random = n.random(ends.low, ends.high)
	c.lanes[1].random = n.random(ends.high, ends.low)
	return c
}

// side is the index of the lane on which a peer sends.
func (c *cable) side(from seam.PeerID) int {
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
	for i := range c.lanes {
		c.lanes[i].settle(now)
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
	for i := range c.lanes {
		c.lanes[i] = lane{random: c.lanes[i].random}
	}
	for _, s := range c.streams {
		s.release(now)
	}
}

// isCut tells whether the link is cut.
func (c *cable) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// send gives size bytes of one side their arrival time. It reports false if they
// were lost too often.
func (c *cable) send(side int, now time.Duration, size int) (time.Duration, bool) {
	if c.cut {
		return never, true
	}
	return c.lanes[side].send(c.link, now, size)
}

// lane is the traffic of one direction. The bytes of a busy period are counted
// from its start, so that rounding never adds up.
type lane struct {
	random *rand.Rand
	start  time.Duration // when the busy period began
	bytes  int64         // sent in it
	free   time.Duration // when the last of them has left
	last   time.Duration // latest arrival so far: the connection keeps order
}

func (l *lane) send(link Link, now time.Duration, size int) (time.Duration, bool) {
	delay := max(link.Delay, 0)
	at := l.transmit(link.Bandwidth, now, size) + delay
	for lost := 0; size > 0 && link.Loss > 0 && l.random.Float64() < link.Loss; lost++ {
		if lost == MaxRetransmits {
			return 0, false
		}
		at = l.transmit(link.Bandwidth, at+delay+RetransmitWait, size) + delay
	}
	l.last = max(l.last, at)
	return l.last, true
}

// transmit returns when size bytes that are ready at a time have left.
func (l *lane) transmit(bandwidth float64, ready time.Duration, size int) time.Duration {
	if ready >= l.free {
		l.start, l.bytes, l.free = ready, 0, ready
	}
	if bandwidth > 0 {
		l.bytes += int64(size)
		l.free = l.start + time.Duration(math.Round(float64(l.bytes)/bandwidth*float64(time.Second)))
	}
	return l.free
}

// settle starts a new busy period where the old one ends, for another bandwidth.
func (l *lane) settle(now time.Duration) {
	l.start, l.bytes = max(now, l.free), 0
	l.free = l.start
}
