package orders

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/standing"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// maxDigests bounds the members whose digests are kept.
const maxDigests = 1024

// Own is this peer's digest now, but for its number and rate, and the number of samples
// that it has learned from so far.
type Own func() (d control.Digest, samples uint64)

// digests are what members tell of themselves, this peer included.
type digests struct {
	run      string
	identity seam.Identity
	every    time.Duration // between two of this peer's, at least; negative if it tells nothing
	flock    Flock
	own      Own

	mu    sync.Mutex
	heard map[seam.PeerID]told
	last  published
}

// told is a digest that was heard. Its partners are marks as long as it is kept: who has
// which is known of members only.
type told struct {
	control.Digest
	partners []wire.DigestPartner
}

// published is what was last told of this peer.
type published struct {
	at       time.Time
	sequence uint64
	samples  uint64
	rate     float64 // samples a second
}

// all are the latest digests of the members, in the order of their ids.
func (d *digests) all() []control.Digest {
	own, _ := d.own()
	names := map[uint64]seam.PeerID{own.Peer.Fingerprint(): own.Peer}
	here := d.flock.Records()
	for _, r := range here {
		names[r.Peer.Fingerprint()] = r.Peer
	}
	own.Partners = slices.DeleteFunc(own.Partners, func(m control.Met) bool { return names[m.Partner.Fingerprint()] == "" })
	d.mu.Lock()
	defer d.mu.Unlock()
	own.Samples, own.Sequence = d.last.rate, d.last.sequence
	all := []control.Digest{own}
	for _, r := range here {
		one, ok := d.heard[r.Peer]
		if !ok {
			continue
		}
		for _, p := range one.partners {
			if id, member := names[p.Mark]; member {
				one.Partners = append(one.Partners, control.Met{Partner: id, Exchanges: uint64(p.Exchanges)})
			}
		}
		all = append(all, one.Digest)
	}
	slices.SortFunc(all, func(a, b control.Digest) int { return cmp.Compare(a.Peer, b.Peer) })
	return all
}

// states are those that digests tell of.
func (d *digests) states() map[seam.PeerID]control.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := make(map[seam.PeerID]control.State, len(d.heard))
	for id, one := range d.heard {
		states[id] = one.State
	}
	return states
}

// first is the time to this peer's first digest: it spreads the members over the time
// between two.
func (d *digests) first() time.Duration {
	if d.every < 0 {
		return math.MaxInt64
	}
	return time.Duration(d.identity.Self().Fingerprint() % uint64(d.every))
}

// next is the time from one of this peer's digests to the next: all members together
// publish at most one in each DigestShare.
func (d *digests) next() time.Duration {
	if d.every < 0 {
		return math.MaxInt64
	}
	members, _ := d.flock.Members()
	return max(d.every, time.Duration(members)*control.DigestShare)
}

// message is what this peer tells the others of itself now. It forgets the digests of
// those who have gone.
func (d *digests) message() ([]byte, error) {
	own, samples := d.own()
	now := time.Now()
	d.mu.Lock()
	if passed := now.Sub(d.last.at).Seconds(); !d.last.at.IsZero() && passed > 0 {
		d.last.rate = float64(samples-d.last.samples) / passed
	}
	d.last.at, d.last.samples = now, samples
	d.last.sequence++
	own.Samples, own.Sequence = d.last.rate, d.last.sequence
	for id := range d.heard {
		if !d.flock.Here(id) {
			delete(d.heard, id)
		}
	}
	d.mu.Unlock()
	said := wire.Digest{
		Incarnation: own.Incarnation, Steps: own.Steps, FlockSteps: own.FlockSteps, Exchanges: own.Exchanges, Failed: own.Failed,
		State: uint8(own.State), Samples: finite(own.Samples), Distance: finite(own.ConsensusDistance),
		Met: uint8(min(len(own.Partners), wire.MaxDigestPartners)),
	}
	for i, m := range own.Partners[:said.Met] {
		said.Partners[i] = wire.DigestPartner{Mark: m.Partner.Fingerprint(), Exchanges: uint32(m.Exchanges & math.MaxUint32)}
	}
	if said.Loss = finite(own.Loss); said.Loss == own.Loss {
		said.HasLoss = true
	}
	m, err := standing.Sign(d.identity, wire.Control{
		Kind: wire.ControlDigest, Sequence: own.Sequence, Run: d.run, Author: string(own.Peer), Body: said.Append(nil),
	})
	return m.Bytes, err
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// judge takes a member's digest if it is newer than the last one, and its own.
func (d *digests) judge(m wire.Control, counts *counts) seam.Verdict {
	author := seam.PeerID(m.Author)
	var said wire.Digest
	switch {
	case m.Kind != wire.ControlDigest:
		return seam.Drop // a later release's
	case author == d.identity.Self():
		return seam.Drop
	case !d.flock.Here(author):
		counts.foreign.Add(1)
		return seam.Drop // it may be a member whose record has not come yet
	case said.Decode(m.Body) != nil:
		counts.malformed.Add(1)
		return seam.Refuse
	case !d.due(author, said.Incarnation, m.Sequence, counts):
		return seam.Drop
	case !d.identity.Verify(author, m.Signed(), m.Signature[:]):
		counts.forged.Add(1)
		return seam.Refuse
	}
	one := told{Digest: control.Digest{
		Peer: author, Incarnation: said.Incarnation, Sequence: m.Sequence, State: control.State(said.State),
		Steps: said.Steps, FlockSteps: said.FlockSteps, Exchanges: said.Exchanges, Failed: said.Failed,
		Loss: said.Loss, Samples: said.Samples, ConsensusDistance: said.Distance, Heard: time.Now(),
	}, partners: slices.Clone(said.Partners[:said.Met])}
	if !said.HasLoss {
		one.Loss = math.NaN()
	}
	d.mu.Lock()
	d.heard[author] = one
	d.mu.Unlock()
	counts.taken.Add(1)
	return seam.Forward
}

// due tells whether a digest is newer than the last one of its author, and not too
// soon after it.
func (d *digests) due(author seam.PeerID, incarnation, sequence uint64, counts *counts) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, known := d.heard[author]
	switch {
	case !known:
		return len(d.heard) < maxDigests
	case incarnation < last.Incarnation, incarnation == last.Incarnation && sequence <= last.Sequence:
		counts.known.Add(1)
		return false
	case time.Since(last.Heard) < control.DigestSpacing/2: // half: what was held up comes in a bunch
		counts.hasty.Add(1)
		return false
	}
	return true
}
