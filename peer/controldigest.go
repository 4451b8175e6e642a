package peer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// digestSpacing is the least time between two digests of a member: sooner ones are
// not passed on.
const digestSpacing = time.Second

// PeerState is what a peer is about.
type PeerState uint8

// The states of a peer, as they are on the wire.
const (
	StateJoining PeerState = iota
	StateCopying
	StateTraining
	StatePaused
	StateOver
)

// String is the state in a word.
func (s PeerState) String() string {
	names := [...]string{"joining", "copying", "training", "paused", "over"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Digest is what a member tells all others of itself now and then.
type Digest struct {
	Peer        seam.PeerID
	Incarnation uint64
	// Sequence grows with each digest of an incarnation.
	Sequence uint64
	State    PeerState
	// Steps are the member's own, FlockSteps its estimate of everybody's.
	Steps, FlockSteps uint64
	// Exchanges are those it completed, Failed those that broke off.
	Exchanges, Failed uint64
	// Loss is NaN before its first step.
	Loss float64
	// Samples is the number of samples that it learns from in a second.
	Samples           float64
	ConsensusDistance float64
	// Partners are those that the member began exchanges with last, at most
	// MaxLinkStats of them; those that are no members any more are left out.
	Partners []Met
	// Heard is when this peer heard it, by its own clock; nothing depends on it.
	Heard time.Time
}

// Digests are the latest digests of the members, this peer's own included, in the
// order of their ids. A member that has gone is left out.
func (p *Peer) Digests() []Digest {
	c := p.control
	c.mu.Lock()
	digests := make([]Digest, 0, len(c.digests)+1)
	for id, d := range c.digests {
		if p.flock.here(id) {
			digests = append(digests, d)
		}
	}
	rate, sequence := c.sent.rate, c.sent.sequence
	c.mu.Unlock()
	p.named(digests)
	own := c.own()
	own.Samples, own.Sequence = rate, sequence
	digests = append(digests, own)
	slices.SortFunc(digests, func(a, b Digest) int { return cmp.Compare(a.Peer, b.Peer) })
	return digests
}

// digestSent is what was last published.
type digestSent struct {
	at       time.Time
	sequence uint64
	samples  uint64
	rate     float64 // samples a second
}

// digestEvery is the time to the next digest: all members together publish at most one
// in each DigestShare.
func (c *control) digestEvery() time.Duration {
	if c.config.Digests < 0 {
		return math.MaxInt64
	}
	members, _ := c.peer.flock.members()
	return max(c.config.Digests, time.Duration(members)*DigestShare)
}

// firstDigest spreads the members over the time between two digests.
func (c *control) firstDigest() time.Duration {
	if c.config.Digests < 0 {
		return math.MaxInt64
	}
	return time.Duration(fingerprint(c.peer.Self()) % uint64(c.config.Digests))
}

// own is this peer's digest now, but for what is measured from one to the next.
func (c *control) own() Digest {
	stats := c.peer.Stats()
	return Digest{
		Peer: stats.Self, Incarnation: stats.Incarnation, State: c.state(stats.Over),
		Steps: stats.Steps, FlockSteps: stats.FlockSteps, Loss: stats.Loss,
		Exchanges: stats.Exchanges.Completed(), Failed: stats.Exchanges.Failed,
		ConsensusDistance: stats.Exchanges.ConsensusDistance, Partners: metBy(stats.Exchanges.Links), Heard: time.Now(),
	}
}

func (c *control) state(over bool) PeerState {
	phase := c.peer.arrival.phase.Load()
	switch {
	case over:
		return StateOver
	case phase == seeking:
		return StateJoining
	case phase == fetching:
		return StateCopying
	case c.paused.Load():
		return StatePaused
	}
	return StateTraining
}

// publishDigest tells the others of this peer.
func (c *control) publishDigest() {
	own, now := c.own(), time.Now()
	samples := c.samples.Load()
	c.mu.Lock()
	if passed := now.Sub(c.sent.at).Seconds(); !c.sent.at.IsZero() && passed > 0 {
		c.sent.rate = float64(samples-c.sent.samples) / passed
	}
	c.sent.at, c.sent.samples = now, samples
	c.sent.sequence++
	own.Samples, own.Sequence = c.sent.rate, c.sent.sequence
	for id := range c.digests {
		if !c.peer.flock.here(id) {
			delete(c.digests, id)
		}
	}
	c.mu.Unlock()
	message, err := c.sign(own)
	if err != nil {
		c.log.Warn("this peer cannot tell others of itself", zap.Error(err))
		return
	}
	c.publish(message)
}

// sign makes a message of this peer's digest.
func (c *control) sign(d Digest) ([]byte, error) {
	said := wire.Digest{
		Incarnation: d.Incarnation, Steps: d.Steps, FlockSteps: d.FlockSteps, Exchanges: d.Exchanges, Failed: d.Failed,
		State: uint8(d.State), Samples: finite(d.Samples), Distance: finite(d.ConsensusDistance),
	}
	tellMet(&said, d.Partners)
	if said.Loss = finite(d.Loss); said.Loss == d.Loss {
		said.HasLoss = true
	}
	m := wire.Control{
		Kind: wire.ControlDigest, Sequence: d.Sequence, Run: c.peer.config.Run, Author: string(d.Peer), Body: said.Append(nil),
	}
	return seal(c.peer.transport, m)
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// judgeDigest takes a member's digest if it is newer than the last one, and its own.
func (c *control) judgeDigest(m wire.Control) seam.Verdict {
	author := seam.PeerID(m.Author)
	var said wire.Digest
	switch {
	case m.Kind != wire.ControlDigest:
		return seam.Drop // a later release's
	case author == c.peer.Self():
		return seam.Drop
	case !c.peer.flock.here(author):
		c.counts.foreign.Add(1)
		return seam.Drop // it may be a member whose record has not come yet
	case said.Decode(m.Body) != nil:
		c.counts.malformed.Add(1)
		return seam.Refuse
	}
	if verdict, ok := c.due(author, said.Incarnation, m.Sequence); !ok {
		return verdict
	}
	if !c.peer.transport.Verify(author, m.Signed(), m.Signature[:]) {
		c.counts.forged.Add(1)
		return seam.Refuse
	}
	d := Digest{
		Peer: author, Incarnation: said.Incarnation, Sequence: m.Sequence, State: PeerState(said.State),
		Steps: said.Steps, FlockSteps: said.FlockSteps, Exchanges: said.Exchanges, Failed: said.Failed,
		Loss: said.Loss, Samples: said.Samples, ConsensusDistance: said.Distance, Partners: hearMet(&said), Heard: time.Now(),
	}
	if !said.HasLoss {
		d.Loss = math.NaN()
	}
	c.mu.Lock()
	c.digests[author] = d
	c.mu.Unlock()
	c.counts.taken.Add(1)
	return seam.Forward
}

// due tells whether a digest is newer than the last one of its author, and not too
// soon after it.
func (c *control) due(author seam.PeerID, incarnation, sequence uint64) (seam.Verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.digests[author]
	switch {
	case !known && len(c.digests) >= MaxDigests:
		return seam.Drop, false
	case !known:
		return 0, true
	case incarnation < last.Incarnation, incarnation == last.Incarnation && sequence <= last.Sequence:
		c.counts.known.Add(1)
		return seam.Drop, false
	case time.Since(last.Heard) < digestSpacing/2: // half: what was held up comes in a bunch
		c.counts.hasty.Add(1)
		return seam.Drop, false
	}
	return 0, true
}
