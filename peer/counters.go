package peer

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// Weights of a new sample in the running means.
const (
	lossSmoothing     = 0.02
	exchangeSmoothing = 0.1
)

// counters are what a peer counts; every goroutine of it may add.
type counters struct {
	steps, head   atomic.Uint64
	resumed       uint64 // of the steps, those of earlier lives; set before anything runs
	role          atomic.Uint32
	view          atomic.Uint64
	every         atomic.Int64
	over          atomic.Bool
	refused       atomic.Uint64
	declined      atomic.Uint64
	failed        atomic.Uint64
	doubted       atomic.Uint64 // slices ever in doubt
	settled       atomic.Uint64 // of these, settled with the partner
	quarantines   atomic.Uint64
	again         atomic.Uint64 // blocks that failed
	blocked       blocked
	tallies       tallies
	sent          atomic.Uint64
	received      atomic.Uint64
	longestHold   atomic.Int64
	mu            sync.Mutex // guards what follows
	rate          float64
	loss          smoothed
	squared       smoothed // squared distance of two models before an exchange
	took, cost    smoothed // in seconds
	initiated     uint64
	served        uint64
	exchangeBytes uint64 // both directions, of completed exchanges
	transfers     uint64 // of those completed, the ones that go one way
	transferred   uint64 // values in them
}

// smoothed is an exponentially weighted running mean that starts at its first
// sample.
type smoothed struct {
	value float64
	known bool
}

func (s *smoothed) add(sample, weight float64) {
	if !s.known {
		s.value, s.known = sample, true
		return
	}
	s.value += weight * (sample - s.value)
}

// learned counts a step's result.
func (c *counters) learned(result Result, rate float64) {
	c.mu.Lock()
	if !math.IsInf(result.Loss, 0) { // −log 0 happens, and would stay in a mean for ever
		c.loss.add(result.Loss, lossSmoothing)
	}
	c.rate = rate
	c.mu.Unlock()
}

// exchanged counts a completed exchange.
func (c *counters) exchanged(x Exchanged, cost time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completed(x, cost)
	c.squared.add(x.Distance*x.Distance, exchangeSmoothing)
}

// moved counts a completed transfer of so many values.
func (c *counters) moved(x Exchanged, cost time.Duration, values uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completed(x, cost)
	c.transfers++
	c.transferred += values
}

// completed counts what exchanges and transfers have in common. The lock is held.
func (c *counters) completed(x Exchanged, cost time.Duration) {
	if x.Inbound {
		c.served++
	} else {
		c.initiated++
	}
	c.exchangeBytes += x.Bytes
	c.took.add(x.Took.Seconds(), exchangeSmoothing)
	c.cost.add(cost.Seconds(), exchangeSmoothing)
}

func (c *counters) hold(d time.Duration) {
	for {
		longest := c.longestHold.Load()
		if int64(d) <= longest || c.longestHold.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// Stats tells what the peer knows of itself and the run now.
func (p *Peer) Stats() Stats {
	members, lost := p.flock.members()
	steps := p.counters.steps.Load()
	s := Stats{
		Self: p.Self(), Role: topology.Role(p.counters.role.Load()).String(), Incarnation: p.incarnation.Load(),
		Steps: steps, Resumed: p.counters.resumed, FlockSteps: p.flock.total(steps), Target: p.target(), Progress: p.progress(),
		Over: p.counters.over.Load(), Merged: p.final.done(), Members: members, Lost: lost, Twins: p.flock.twins(time.Now()), Joined: p.arrival.has(),
		Connections: p.transport.Connections(), Loss: math.NaN(),
	}
	p.watchConnections()
	s.ConnectionsMax = int(p.connectionsPeak.Load())
	p.counters.report(&s, p.replica.SharedLen())
	s.State, s.Age = p.stateStats(), p.age()
	s.Exchanges.Every = int(p.counters.every.Load())
	p.plans.links.report(&s.Exchanges, p.config.Exchange.Codec.Choosing())
	s.Exchanges.Pulls = p.pulls()
	s.Quarantined = p.quarantine.count(time.Now())
	waiting, _ := p.sides.ledger.InDoubt()
	gone := p.sides.ledger.Lost()
	s.Exchanges.InDoubt, s.Exchanges.Lost, s.Exchanges.LostBound = uint64(waiting), gone.Slices, gone.Bound
	return s
}

// report fills in what is counted.
func (c *counters) report(s *Stats, shared int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loss.known {
		s.Loss = c.loss.value
	}
	s.Rate = c.rate
	x := &s.Exchanges
	*x = ExchangeStats{
		Initiated: c.initiated, Served: c.served,
		Refused: c.refused.Load(), Declined: c.declined.Load(), Failed: c.failed.Load(),
		Settled: c.settled.Load(), Quarantines: c.quarantines.Load(), Blocked: c.blocked.report(),
		Again:     c.again.Load(),
		BytesSent: c.sent.Load(), BytesReceived: c.received.Load(),
		ConsensusDistance: math.Sqrt(c.squared.value / 2),
		Took:              seconds(c.took.value), Cost: seconds(c.cost.value),
		LongestHold: time.Duration(c.longestHold.Load()),
	}
	if values := 2*(x.Completed()-c.transfers)*uint64(shared) + c.transferred; values > 0 {
		x.BitsPerParameter = float64(c.exchangeBytes) * 8 / float64(values)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
