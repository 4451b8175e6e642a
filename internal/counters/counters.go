// Package counters counts what a peer does, in the figures of package stats.
package counters

import (
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Weights of a new sample in the running means.
const (
	lossSmoothing     = 0.02
	exchangeSmoothing = 0.1
)

// maxReasons bounds the reasons that are told apart: those with higher numbers count as
// unknown.
const maxReasons = 16

// Counters is what a peer has counted. It is safe for concurrent use, and counts without
// memory of its own for each time.
type Counters struct {
	mu          sync.Mutex
	exchanges   stats.Exchanges
	counts      stats.Counters
	rate        float64
	loss        ewma.Mean
	squared     ewma.Mean // squared distance of two models before an exchange
	took, cost  ewma.Mean // in seconds
	bytes       uint64    // both directions, of completed exchanges
	values      uint64    // that moved in these, both directions
	connections int       // the most seen
}

// New has counted nothing.
func New() *Counters {
	t := &Counters{}
	t.counts.Refused, t.counts.Declined = map[string]uint64{}, map[string]uint64{}
	t.counts.Failed, t.counts.Dropped = map[string]uint64{}, map[string]uint64{}
	t.counts.Traffic = map[string]stats.Traffic{}
	return t
}

// Stepped counts a step, which waited so long for exchanges.
func (t *Counters) Stepped(waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Blocked.Add(waited)
}

// Learned takes the loss of a step, the learning rate, and from how many samples the
// gradient was computed.
func (t *Counters) Learned(loss, rate float64, samples int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !math.IsInf(loss, 0) { // −log 0 happens, and would stay in a mean for ever
		t.loss.Add(loss, lossSmoothing)
	}
	t.rate = rate
	t.counts.Samples += uint64(max(samples, 0))
}

// Held notes for how long the trainer was kept from its work.
func (t *Counters) Held(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.LongestHold = max(t.exchanges.LongestHold, d)
}

// Paced notes the number of steps between two exchanges.
func (t *Counters) Paced(every int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Every = every
}

// Connected notes the number of connections, and returns the most that were seen.
func (t *Counters) Connected(n int) (most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections = max(t.connections, n)
	return t.connections
}

// Refused counts a proposal that a partner declined.
func (t *Counters) Refused(reason wire.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Refused++
	t.counts.Refused[nameOf(reason)]++
}

// Declined counts a request that this peer declined.
func (t *Counters) Declined(reason wire.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Declined++
	t.counts.Declined[nameOf(reason)]++
}

func nameOf(reason wire.Reason) string {
	if reason == 0 || reason >= maxReasons {
		return "unknown"
	}
	return reason.String()
}

// Failed counts an exchange that broke off: one that this side served if it is inbound.
func (t *Counters) Failed(why error, inbound bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Failed++
	if inbound {
		t.counts.Dropped[causeOf(why)]++
	} else {
		t.counts.Failed[causeOf(why)]++
	}
}

// causeOf names why an exchange broke off.
func causeOf(err error) string {
	_, theirs := replica.Blame(err)
	switch {
	case theirs:
		return "protocol" // the partner broke the rules
	case errors.As(err, new(*wire.Refusal)):
		return "refused" // by the partner, in the middle
	case errors.Is(err, transport.ErrUnreachable):
		return "unreachable"
	case links.RanOut(err):
		return "time" // it took too long, or nothing moved
	case errors.Is(err, session.ErrAborted):
		return "given-up"
	}
	return "cut" // the stream ended or broke
}

// Moved counts what went over a stream of an exchange that is coded so, or of none.
func (t *Counters) Moved(codec coding.ID, sent, received uint64) {
	name := "none"
	if known, ok := coding.ByID(codec); ok {
		name = known.Name
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.BytesSent += sent
	t.exchanges.BytesReceived += received
	moved := t.counts.Traffic[name]
	t.counts.Traffic[name] = stats.Traffic{Sent: moved.Sent + sent, Received: moved.Received + received}
}

// Answered counts the time from a proposal to its answer.
func (t *Counters) Answered(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Rounds.Add(after)
}

// Completed is an exchange, or a transfer, that is complete.
type Completed struct {
	Inbound    bool
	Values     uint64 // that moved, both directions
	Bytes      uint64 // the same, headers included
	Steps      uint64 // that the trainer took meanwhile
	Took, Cost time.Duration
}

// Completed counts one.
func (t *Counters) Completed(c Completed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Inbound {
		t.exchanges.Served++
	} else {
		t.exchanges.Initiated++
	}
	t.exchanges.Last = time.Now()
	t.bytes += c.Bytes
	t.values += c.Values
	t.took.Add(c.Took.Seconds(), exchangeSmoothing)
	t.cost.Add(c.Cost.Seconds(), exchangeSmoothing)
	t.counts.Durations.Add(c.Took)
	t.counts.Age.Add(c.Steps)
}

// Exchanges is the number of those completed.
func (t *Counters) Exchanges() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exchanges.Completed()
}

// Distance takes the distance of two models before an exchange.
func (t *Counters) Distance(d float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.squared.Add(d*d, exchangeSmoothing)
}

// Retransmitted counts blocks that failed.
func (t *Counters) Retransmitted(blocks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Retransmitted += uint64(blocks)
}

// Resolved counts slices that were in doubt.
func (t *Counters) Resolved(slices int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Settled += uint64(slices)
}

// Quarantined counts a partner that broke the rules.
func (t *Counters) Quarantined() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exchanges.Quarantines++
}

// Rows lets a function change the counts of rows that travel: those of this peer that others take, and those that it takes.
func (t *Counters) Rows(change func(held, taken *stats.Rows)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts.RowsHeld, &t.counts.RowsTaken)
}

// Report fills in what was counted.
func (t *Counters) Report(s *stats.Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Exchanges, s.Rate, s.Loss, s.ConnectionsMax = t.exchanges, t.rate, math.NaN(), t.connections
	if t.loss.Known() {
		s.Loss = t.loss.Value()
	}
	x := &s.Exchanges
	x.ConsensusDistance = math.Sqrt(t.squared.Value() / 2)
	x.Took, x.Cost = seconds(t.took), seconds(t.cost)
	if t.values > 0 {
		x.BitsPerParameter = float64(t.bytes) * 8 / float64(t.values)
	}
}

func seconds(m ewma.Mean) time.Duration { return time.Duration(m.Value() * float64(time.Second)) }

// Counts are the counts that tell causes apart.
func (t *Counters) Counts() stats.Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	result := t.counts
	result.Refused, result.Declined = maps.Clone(result.Refused), maps.Clone(result.Declined)
	result.Failed, result.Dropped = maps.Clone(result.Failed), maps.Clone(result.Dropped)
	result.Traffic = maps.Clone(result.Traffic)
	return result
}
