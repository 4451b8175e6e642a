package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-97356399/murmuration/peer"
)

// Peer is a peer as those see it who only look.
type Peer interface {
	Stats() peer.Stats
	Tallies() peer.Tallies
	Members() []peer.Member
	State() peer.PeerState
}

// collector asks a peer for its numbers whenever Prometheus does: nothing is counted
// for it in between.
type collector struct {
	peer          Peer
	checkpointAge func() (time.Duration, bool)
	descriptions
}

func newCollector(p Peer, checkpointAge func() (time.Duration, bool)) collector {
	return collector{p, checkpointAge, newDescriptions()}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.all() {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s, t := c.peer.Stats(), c.peer.Tallies()
	e := emitter(out)
	e.gauge(c.info, 1, string(s.Self), s.Role, c.peer.State().String())
	e.counter(c.steps, s.Steps)
	e.counter(c.samples, t.Samples)
	e.gauge(c.flockSteps, float64(s.FlockSteps))
	e.gauge(c.flockTarget, float64(s.Target))
	e.gauge(c.progress, s.Progress)
	e.gauge(c.loss, s.Loss)
	e.gauge(c.rate, s.Rate)
	c.collectMembers(e, s, t)
	c.collectExchanges(e, s.Exchanges, t)
	for _, l := range s.Exchanges.Links {
		e.gauge(c.partnerRate, l.Rate, string(l.Partner), l.Codec)
		e.gauge(c.partnerRound, l.Round.Seconds(), string(l.Partner))
	}
	for _, p := range s.Exchanges.Pulls {
		e.gauge(c.pull, p.Pull, string(p.Partner))
	}
	e.gauge(c.newcomers, float64(s.State.Newcomers))
	e.counter(c.given, s.State.Given)
	if c.checkpointAge != nil {
		if age, ok := c.checkpointAge(); ok {
			e.gauge(c.checkpoint, age.Seconds())
		}
	}
}

func (c collector) collectMembers(e emitter, s peer.Stats, t peer.Tallies) {
	var states [peer.StateOver + 2]int // the last is of states that this release does not know
	for _, m := range c.peer.Members() {
		states[min(int(m.State), len(states)-1)]++
	}
	for state, n := range states {
		e.gauge(c.members, float64(n), peer.PeerState(state).String())
	}
	e.counter(c.lost, uint64(s.Lost))
	e.gauge(c.connections, float64(s.Connections))
	e.gauge(c.twins, float64(s.Twins))
	e.gauge(c.quarantined, float64(s.Quarantined))
	e.counter(c.quarantines, s.Exchanges.Quarantines)
	for reason, n := range t.TransportRefused {
		e.counter(c.refused, n, reason)
	}
	for reason, n := range t.MembershipRefused {
		e.counter(c.unheard, n, reason)
	}
}

// What labels say.
const (
	sideInitiated = "initiated"
	sideServed    = "served"
	noReason      = "none"
)

func (c collector) collectExchanges(e emitter, x peer.ExchangeStats, t peer.Tallies) {
	e.counter(c.exchanges, x.Initiated, sideInitiated, "completed", noReason)
	e.counter(c.exchanges, x.Served, sideServed, "completed", noReason)
	for reason, n := range t.Refused {
		e.counter(c.exchanges, n, sideInitiated, "refused", reason)
	}
	for reason, n := range t.Declined {
		e.counter(c.exchanges, n, sideServed, "refused", reason)
	}
	for reason, n := range t.Failed {
		e.counter(c.exchanges, n, sideInitiated, "failed", reason)
	}
	for reason, n := range t.Dropped {
		e.counter(c.exchanges, n, sideServed, "failed", reason)
	}
	for codec, moved := range t.Traffic {
		e.counter(c.bytes, moved.Sent, "sent", codec)
		e.counter(c.bytes, moved.Received, "received", codec)
	}
	e.gauge(c.bits, x.BitsPerParameter/8)
	e.gauge(c.distance, x.ConsensusDistance)
	e.gauge(c.every, float64(x.Every))
	e.counter(c.resent, x.Again)
	e.ages(c.staleness, t.Age)
	e.times(c.took, t.Durations)
	e.times(c.round, t.Rounds)
	e.times(c.wait, x.Blocked)
	e.gauge(c.hold, x.LongestHold.Seconds())
	e.gauge(c.doubt, float64(x.InDoubt))
	e.counter(c.settled, x.Settled)
	e.counter(c.slicesLost, x.Lost)
}

// emitter hands out metrics.
type emitter chan<- prometheus.Metric

func (e emitter) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func (e emitter) counter(desc *prometheus.Desc, value uint64, labels ...string) {
	e <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

// The bounds of times that are handed out: each is four times the one before, so that
// a histogram has few series whatever the link is like.
const (
	firstTime = 1 << 12 // nanoseconds
	timeSteps = 13      // up to 69 s
)

// times hands out a histogram of durations. Its bounds are powers of two in
// nanoseconds, which are bounds of the histogram's own buckets.
func (e emitter) times(desc *prometheus.Desc, h peer.Histogram) {
	bounds := make(map[float64]uint64, timeSteps)
	bound, seen, all := time.Duration(firstTime), uint64(0), h.Count()
	for i, n := range h.Counts {
		seen += n
		if h.Bound(i) == bound && len(bounds) < timeSteps {
			bounds[bound.Seconds()] = seen
			bound *= 4
		}
	}
	e <- prometheus.MustNewConstHistogram(desc, all, h.Sum.Seconds(), bounds)
}

// ages hands out a histogram of steps.
func (e emitter) ages(desc *prometheus.Desc, a peer.Ages) {
	bounds, seen := make(map[float64]uint64, len(a.Counts)), uint64(0)
	for i, n := range a.Counts {
		seen += n
		if i < len(a.Counts)-1 && i%2 == 0 { // 0, 3, 15, 63, …
			bounds[float64(a.Bound(i))] = seen
		}
	}
	e <- prometheus.MustNewConstHistogram(desc, seen, float64(a.Sum), bounds)
}
