package control

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Member is what is known of a member of a run: from the record that it signed and the digests that it tells,
// or, to an Observer, from what another member says of it, which is for people to look at.
type Member struct {
	ID   transport.PeerID
	Role topology.Role
	// Addresses are where it can be reached, as its record says; nil of the peer itself, and to an Observer.
	Addresses []string
	// State is the state in its latest digest; without digests it follows from the record,
	// in which a member that is paused or copying looks as if it trained.
	State State
	// Steps are the most that its record and its digests tell.
	Steps uint64
	// Rows is how many rows it gives to others that train, as its record says; 0 if it gives none.
	Rows uint64
	// Place is where in the network it is, as its record says.
	Place topology.Place
	// Stage is the part that it trains of a model larger than one peer, from 1, as its record says; 0 if it trains none.
	Stage uint8
	// Unreachable tells that others cannot dial it, Leaving that it is about to go.
	Unreachable, Leaving bool
	// Digest is the member's last digest, for an Observer without partners. Its Received is zero, and its Loss
	// NaN, if there is none: the member sends none, or has only come. Times are by this process's clock.
	Digest
}

// Does is what the member does: "trains", "holds" rows for others, "trains, holds", or "looks on".
func (m Member) Does() string {
	switch trains := m.State != Idle; {
	case trains && m.Rows > 0:
		return "trains, holds"
	case trains:
		return "trains"
	case m.Rows > 0:
		return "holds"
	}
	return "looks on"
}

// Encoded is the member as sent to a program outside the run at a moment; partners have no names there.
func (m Member) Encoded(now time.Time) []byte {
	payload := wire.BodyWriter()
	m.fields(&payload, now)
	return payload.Written()
}

// memberOf reads what Encoded wrote.
func memberOf(encoded []byte, now time.Time) (m Member, err error) {
	payload := wire.BodyReader(wire.TypeMember, encoded)
	m.fields(&payload, now)
	return m, payload.Finish()
}

// fields writes or reads a member at a moment.
func (m *Member) fields(c *wire.Coder, now time.Time) {
	role := m.Role.String()
	var digest []byte
	if !m.Received.IsZero() {
		digest = m.Digest.Body(wire.ControlDigest)
	}
	c.Text((*string)(&m.ID), 1, wire.MaxAuthor)
	c.Text(&role, 0, maxRole)
	c.Uint8((*uint8)(&m.State))
	m.flags(c)
	c.Uint64(&m.Steps)
	m.names(c)
	ago(c, &m.Received, now)
	ago(c, &m.Exchanged, now)
	c.Bytes(&digest, 2, 0, wire.MaxDigest, "bytes of digest")
	if m.last(c, m); c.Reading {
		m.Role = roles[role]
		m.read(c, digest)
	}
}

// place writes or reads where a member is.
func (m *Member) place(c *wire.Coder) {
	c.Text(&m.Place.Site, 0, topology.MaxSite)
	c.Uint8((*uint8)(&m.Place.Uplink))
}

// placeOf takes the place, and the stage, from what a message ends with; a place that makes no sense is none.
func (m *Member) placeOf(rest []byte) {
	told := wire.BodyReader(wire.TypeMember, rest)
	m.place(&told)
	var later []byte
	if told.Remaining(&later); told.Finish() != nil || m.Place.Validate() != nil {
		m.Place, later = topology.Place{}, nil
	}
	if len(later) > 0 {
		m.Stage = later[0]
	}
}

// maxRole bounds the word for a role, and roles are those that are told of.
const maxRole = 16

var roles = map[string]topology.Role{topology.Active.String(): topology.Active, topology.Passive.String(): topology.Passive}

// flags writes or reads what a member is besides, a bit each.
func (m *Member) flags(c *wire.Coder) {
	bits := uint8(0)
	for i, is := range []*bool{&m.Unreachable, &m.Leaving} {
		if *is {
			bits |= 1 << i
		}
	}
	c.Uint8(&bits)
	m.Unreachable, m.Leaving = bits&1 != 0, bits&2 != 0
}

// read takes the digest that comes with a member; no bytes mean none.
func (m *Member) read(c *wire.Coder, digest []byte) {
	if len(digest) == 0 {
		m.Received, m.Loss = time.Time{}, math.NaN()
		return
	}
	body := wire.BodyReader(wire.TypeMember, digest)
	m.Digest.fields(&body, wire.ControlDigest)
	if err := body.Finish(); err != nil {
		c.Fault("its digest: %v", err)
	}
	m.Partners = nil // who they are is known inside
}

const (
	// never stands for a moment that is not known.
	never = math.MaxUint64
	// longest bounds a past time reported by another.
	longest = 100 * 365 * 24 * time.Hour
)

// ago writes or reads a moment as the milliseconds from then to now.
func ago(c *wire.Coder, then *time.Time, now time.Time) {
	since := uint64(never)
	if !then.IsZero() {
		since = uint64(max(now.Sub(*then).Milliseconds(), 0))
	}
	if c.Uint64(&since); c.Reading && since != never {
		*then = now.Add(-time.Duration(min(since, uint64(longest.Milliseconds()))) * time.Millisecond)
	}
}
