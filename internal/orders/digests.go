package orders

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxDigests bounds the members whose digests are kept.
	maxDigests = 1024
	// introductions is how many digests in a row this peer goes with its name after somebody
	// has come, whose topic may not bring the first; introduceEvery is after how many it does so
	// in any case.
	introductions  = 3
	introduceEvery = 16
)

// Own tells of this peer.
type Own interface {
	// Digest is this peer's now, but for its number and rate, and the number of samples that it
	// has learned from so far.
	Digest() (d control.Digest, samples uint64)
}

// digests are what members tell of themselves, this peer included.
type digests struct {
	run      string
	identity transport.Identity
	every    time.Duration // between two of this peer's, at least; negative if it tells nothing
	flock    Flock

	mu       sync.Mutex
	received map[transport.PeerID]latest
	last     published
}

// latest is what was heard of a member: its Heard is zero before the first digest. Its
// partners have no names as long as it is kept: those are known of members only.
type latest struct {
	control.Digest
	digested   mark
	introduced mark
}

// mark tells of the last message of a kind.
type mark struct {
	incarnation, sequence uint64
	at                    time.Time
}

// published is what was last told of this peer.
type published struct {
	at       time.Time
	sequence uint64
	samples  uint64
	rate     float64 // samples a second
	messages int     // that were sent at once
	members  int     // that were here
	unknown  int     // digests that are yet to go with an introduction
}

// fill adds to what is known of members, this one among them, their latest digests.
func (d *digests) fill(members []control.Member, own control.Digest) {
	names := make(map[uint64]transport.PeerID, len(members))
	for _, m := range members {
		names[m.ID.Fingerprint()] = m.ID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	own.Samples, own.Sequence = d.last.rate, d.last.sequence
	for i := range members {
		m := &members[i]
		if m.Digest = d.received[m.ID].Digest; m.ID == d.identity.Self() {
			m.Digest = own
		}
		if m.Digest = m.Digest.Named(names); m.Heard.IsZero() {
			m.Loss = math.NaN()
		}
		m.Steps = max(m.Steps, m.Digest.Steps)
	}
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
// publish at most one message in each DigestShare.
func (d *digests) next() time.Duration {
	if d.every < 0 {
		return math.MaxInt64
	}
	members, _ := d.flock.Members()
	d.mu.Lock()
	defer d.mu.Unlock()
	return max(d.every, time.Duration(members*max(d.last.messages, 1))*control.DigestShare)
}

// messages are what this peer tells the others of itself now: a digest, and how it is
// called where somebody may not know it. It forgets the digests of those who have gone.
func (d *digests) messages(of Own) (messages [][]byte, err error) {
	own, introduce := d.upToDate(of)
	kinds := []wire.ControlKind{wire.ControlDigest}
	if introduce {
		kinds = append(kinds, wire.ControlIntroduction)
	}
	for _, kind := range kinds {
		m, err := orderlog.Sign(d.identity, wire.Control{Kind: kind, Sequence: own.Sequence, Run: d.run, Author: string(d.identity.Self()), Body: own.Body(kind)})
		if err != nil {
			return nil, err
		}
		messages = append(messages, m.Bytes)
	}
	return messages, nil
}

// upToDate is this peer's digest as it is published now, and whether an introduction is to
// go with it.
func (d *digests) upToDate(of Own) (own control.Digest, introduce bool) {
	own, samples := of.Digest()
	now := time.Now()
	members, _ := d.flock.Members()
	d.mu.Lock()
	defer d.mu.Unlock()
	last := &d.last
	if passed := now.Sub(last.at).Seconds(); !last.at.IsZero() && passed > 0 {
		last.rate = float64(samples-last.samples) / passed
	}
	last.at, last.samples = now, samples
	if members > last.members {
		last.unknown = introductions
	}
	last.members, last.messages = members, 1
	if named := own.Name != "" || own.Version != ""; named && (last.unknown > 0 || last.sequence%introduceEvery == 0) {
		introduce, last.messages, last.unknown = true, 2, max(last.unknown-1, 0)
	}
	last.sequence++
	own.Samples, own.Sequence = last.rate, last.sequence
	for id := range d.received {
		if !d.flock.Here(id) {
			delete(d.received, id)
		}
	}
	return own, introduce
}

// judge takes a member's word on itself if it is newer than the last one, and its own.
func (d *digests) judge(m wire.Control, counts *counts) transport.Verdict {
	author := transport.PeerID(m.Author)
	said, fault := control.DigestOf(m, time.Now())
	now := mark{said.Incarnation, said.Sequence, said.Heard}
	switch {
	case errors.Is(fault, control.ErrKind):
		return transport.Drop // a later release's
	case author == d.identity.Self():
		return transport.Drop
	case !d.flock.Here(author):
		counts.foreign.Add(1)
		return transport.Drop // it may be a member whose record has not come yet
	case fault != nil:
		counts.malformed.Add(1)
		return transport.Refuse
	case !d.due(author, m.Kind, now, counts):
		return transport.Drop
	case !d.identity.Verify(author, m.Signed(), m.Signature[:]):
		counts.forged.Add(1)
		return transport.Refuse
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.received[author]
	if m.Kind == wire.ControlIntroduction {
		one.Name, one.Version, one.introduced = said.Name, said.Version, now
	} else {
		one = one.after(said, now)
	}
	d.received[author] = one
	counts.taken.Add(1)
	return transport.Forward
}

// after is what is known of a member by a newer digest.
func (t latest) after(said control.Digest, now mark) latest {
	one := latest{Digest: said, digested: now, introduced: t.introduced}
	one.Name, one.Version, one.Exchanged = t.Name, t.Version, t.Exchanged
	if said.Exchanges > 0 && (said.Exchanges != t.Exchanges || said.Incarnation != t.Incarnation) {
		one.Exchanged = now.at
	}
	return one
}

// due tells whether a message is newer than the last one of its kind and author, and not
// too soon after it.
func (d *digests) due(author transport.PeerID, kind wire.ControlKind, now mark, counts *counts) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, known := d.received[author]
	last := one.digested
	if kind == wire.ControlIntroduction {
		last = one.introduced
	}
	switch {
	case !known:
		return len(d.received) < maxDigests
	case last.at.IsZero():
	case now.incarnation < last.incarnation, now.incarnation == last.incarnation && now.sequence <= last.sequence:
		counts.known.Add(1)
		return false
	case now.at.Sub(last.at) < control.DigestSpacing/2: // half: what was held up comes in a bunch
		counts.hasty.Add(1)
		return false
	}
	return true
}
