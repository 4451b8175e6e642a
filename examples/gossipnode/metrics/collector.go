package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// Peer is a peer as those see it who only look.
type Peer interface {
	Stats() stats.Peer
	Tallies() stats.Tallies
	Members() []peer.Member
	State() control.State
}

// collector asks a peer for its numbers whenever Prometheus does: nothing is counted
// for it in between.
type collector struct {
	peer          Peer
	checkpointAge func() (time.Duration, bool)
}

func newCollector(p Peer, checkpointAge func() (time.Duration, bool)) collector {
	if checkpointAge == nil {
		checkpointAge = func() (time.Duration, bool) { return 0, false }
	}
	return collector{p, checkpointAge}
}

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f.described()
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	m := &moment{Peer: c.peer.Stats(), tallies: c.peer.Tallies(), members: c.peer.Members(), state: c.peer.State(), checkpointAge: c.checkpointAge}
	for _, f := range families {
		f.emit(emitter{f.described(), out}, m)
	}
}

// emitter hands out the values of a metric.
type emitter struct {
	desc *prometheus.Desc
	out  chan<- prometheus.Metric
}

func (e emitter) gauge(value float64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, value, labels...)
}

func (e emitter) counter(value uint64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(value), labels...)
}

// The bounds of times that are handed out: each is four times the one before, so that
// a histogram has few series whatever the link is like.
const (
	firstTime = 1 << 12 // nanoseconds
	timeSteps = 13      // up to 69 s
)

// times hands out a histogram of durations. Its bounds are powers of two in
// nanoseconds, which are bounds of the histogram's own buckets.
func (e emitter) times(h stats.Histogram) {
	bounds := make(map[float64]uint64, timeSteps)
	bound, seen, all := time.Duration(firstTime), uint64(0), h.Count()
	for i, n := range h.Counts {
		seen += n
		if h.Bound(i) == bound && len(bounds) < timeSteps {
			bounds[bound.Seconds()] = seen
			bound *= 4
		}
	}
	e.out <- prometheus.MustNewConstHistogram(e.desc, all, h.Sum.Seconds(), bounds)
}

// ages hands out a histogram of steps.
func (e emitter) ages(a stats.Ages) {
	bounds, seen := make(map[float64]uint64, len(a.Counts)), uint64(0)
	for i, n := range a.Counts {
		seen += n
		if i < len(a.Counts)-1 && i%2 == 0 { // 0, 3, 15, 63, …
			bounds[float64(a.Bound(i))] = seen
		}
	}
	e.out <- prometheus.MustNewConstHistogram(e.desc, seen, float64(a.Sum), bounds)
}
