package orders

import (
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/internal/orderlog"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxDigests bounds the members whose digests are kept.
	maxDigests = 1024
	// introductions is how many digests in a row this peer sends with its name after a member
	// has joined, since the newcomer may miss the first; introduceEvery is after how many
	// digests it sends its name in any case.
	introductions  = 3
	introduceEvery = 16
	// warnSpacing is the least time between two introductions that go because this peer's alarms have changed,
	// the partner that harms it, or its trust.
	warnSpacing = 5 * time.Second
	// muchTrust is the least change of trust for which one goes.
	muchTrust = 0.2
)

// Own gives the state of this peer.
type Own interface {
	// Digest is this peer's current digest, without its sequence number and rate, and the
	// number of samples that it has learned from so far.
	Digest() (d control.Digest, samples uint64)
}

// digests holds the members' digests, this peer's included.
type digests struct {
	run      string
	identity transport.Identity
	every    time.Duration // least time between two of this peer's; negative if it sends none
	flock    Flock

	mu       sync.Mutex
	received map[transport.PeerID]latest
	last     published
}

// latest is the last digest of a member: its Received is zero before the first. Its partners
// have no names here; these are looked up among the members.
type latest struct {
	control.Digest
	digested   mark
	introduced mark
	evaluated  mark
}

// mark is the sequence and time of the last message of a kind.
type mark struct {
	incarnation, sequence uint64
	at                    time.Time
}

// published is what this peer published last.
type published struct {
	at       time.Time
	sequence uint64
	samples  uint64
	rate     float64 // samples a second
	messages int     // that were sent at once
	members  int     // that were present
	unknown  int     // further digests that are to go with an introduction
	harm     control.Harm
	alarms   stats.AlarmSet
	warned   time.Time // when harm and alarms were published
}

// fill adds the latest digests to members, this one included.
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
		if m.Digest = m.Digest.Named(names); m.Received.IsZero() {
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

// messages are this peer's messages now: a digest, and its name and harm if a member may not
// know them. It drops the digests of members that have gone.
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

// upToDate is this peer's digest to publish now, and whether an introduction goes with it.
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
	if named := own.Name != "" || own.Version != "" || own.Harm != (control.Harm{}) || own.Alarms != 0; named && (last.unknown > 0 || last.sequence%introduceEvery == 0) ||
		(changed(last.harm, own.Harm) || last.alarms != own.Alarms) && now.Sub(last.warned) >= warnSpacing {
		last.harm, last.alarms, last.warned = own.Harm, own.Alarms, now
		introduce, last.messages, last.unknown = true, 2, max(last.unknown-1, 0)
	}
	last.sequence++
	own.Samples, own.Sequence = last.rate, last.sequence
	maps.DeleteFunc(d.received, func(id transport.PeerID, _ latest) bool { return !d.flock.Here(id) })
	return own, introduce
}

// changed tells whether other members should know soon that a harm has become another.
func changed(from, to control.Harm) bool {
	return from.Partner != to.Partner || math.Abs(from.Trust-to.Trust) >= muchTrust
}

// judge takes a member's message about itself if that is newer than the last one.
func (d *digests) judge(m wire.Control, counts *counts) transport.Verdict {
	author := transport.PeerID(m.Author)
	said, fault := control.DigestOf(m, time.Now())
	now := mark{said.Incarnation, said.Sequence, said.Received}
	switch {
	case errors.Is(fault, control.ErrKind):
		return transport.Drop // of a later release
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
	switch m.Kind {
	case wire.ControlIntroduction:
		one.Name, one.Version, one.Harm, one.Alarms, one.introduced = said.Name, said.Version, said.Harm, said.Alarms, now
	case wire.ControlEvaluation:
		one.Evaluation, one.evaluated = said.Evaluation, now
		one.Evaluation.Heard = now.at
	default:
		one = one.after(said, now)
	}
	d.received[author] = one
	counts.taken.Add(1)
	return transport.Forward
}

// after is the entry of a member updated by a newer digest.
func (t latest) after(said control.Digest, now mark) latest {
	one := latest{Digest: said, digested: now, introduced: t.introduced, evaluated: t.evaluated}
	one.Name, one.Version, one.Harm, one.Alarms, one.Exchanged, one.Evaluation = t.Name, t.Version, t.Harm, t.Alarms, t.Exchanged, t.Evaluation
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
	last, spacing := one.digested, control.DigestSpacing
	switch kind {
	case wire.ControlIntroduction:
		last = one.introduced
	case wire.ControlEvaluation:
		last, spacing = one.evaluated, control.EvaluationSpacing
	}
	switch {
	case !known:
		return len(d.received) < maxDigests
	case last.at.IsZero():
	case now.incarnation < last.incarnation, now.incarnation == last.incarnation && now.sequence <= last.sequence:
		counts.known.Add(1)
		return false
	case now.at.Sub(last.at) < spacing/2: // half, since delayed messages arrive in a bunch
		counts.hasty.Add(1)
		return false
	}
	return true
}

// evaluations calls hear with the last evaluation of each member that has told one.
func (d *digests) evaluations(hear func(transport.PeerID, control.Evaluation)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, one := range d.received {
		if !one.Evaluation.Heard.IsZero() {
			hear(id, one.Evaluation)
		}
	}
}
