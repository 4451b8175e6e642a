package control

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/internal/until"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// State is what a peer is about.
type State uint8

// The states of a peer, as they are on the wire. Nobody says Closed there: it is what a peer
// that has left the run says of itself to its own program.
const (
	Joining State = iota
	Copying
	Training
	Paused
	Over
	Closed
	Idle // a member that does not train
)

// String is the name of the state.
func (s State) String() string {
	names := [...]string{"joining", "copying", "training", "paused", "over", "closed", "idle"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Evaluation is what a member tells of its model on the data that it holds out, and whether it wants the run to end.
type Evaluation = until.Said

// Digest is what a member tells all others of itself now and then.
type Digest struct {
	// Name and Version are what the member calls itself and was built from: printable
	// text, empty until it is known.
	Name, Version string
	Incarnation   uint64
	// Sequence grows with each digest of an incarnation.
	Sequence uint64
	State    State
	// Steps are the member's own, FlockSteps its estimate of everybody's.
	Steps, FlockSteps uint64
	// Exchanges are those it completed, Failed those that broke off.
	Exchanges, Failed uint64
	// Loss is NaN before its first step.
	Loss float64
	// Samples is the number of samples that it learns from in a second.
	Samples           float64
	ConsensusDistance float64
	// Partners are the few that the member began exchanges with last; those that are no
	// members any more are left out.
	Partners []Met
	// Harm is of the partner that the member trusts least, if that is by less than a half, with a harm above a half.
	Harm Harm
	// Alarms are those that the member raises of itself.
	Alarms stats.AlarmSet
	// Evaluation is the last that the member has told.
	Evaluation Evaluation
	// Received is when this peer received the digest, and Exchanged when it received the
	// first digest with the last exchange, by this peer's own clock; nothing depends on them.
	// Exchanged is zero if none is known of.
	Received, Exchanged time.Time
}

// Met tells of exchanges that a member began with one partner.
type Met struct {
	Partner transport.PeerID
	// Exchanges counts those that completed. As others tell them they begin again at 0
	// after 2^32.
	Exchanges uint64

	mark uint64 // stands for a partner while it has no name
}

// fingerprint is what a message says for the partner's id: a hint for people who look at a
// run, which proves nothing.
func (m Met) fingerprint() uint64 {
	if m.Partner == "" {
		return m.mark
	}
	return m.Partner.Fingerprint()
}

// Named is the digest with those partners alone that have a name here, by fingerprint, the one
// that does harm included.
func (d Digest) Named(names map[uint64]transport.PeerID) Digest {
	met := d.Partners
	d.Partners, d.Harm = nil, d.Harm.named(names)
	for _, m := range met {
		if id, here := names[m.fingerprint()]; here {
			d.Partners = append(d.Partners, Met{Partner: id, Exchanges: m.Exchanges})
		}
	}
	return d
}

// Body is what a message of a kind says of a member; docs/WIRE.md has the bytes.
func (d Digest) Body(kind wire.ControlKind) []byte {
	body := wire.BodyWriter()
	d.fields(&body, kind)
	return body.Written()
}

// DigestOf reads what a message says of its author; Named finds its partners' names.
func DigestOf(m wire.Control, received time.Time) (Digest, error) {
	d, body := Digest{Sequence: m.Sequence, Received: received}, wire.BodyReader(wire.TypeControl, m.Body)
	if m.Kind != wire.ControlDigest && m.Kind != wire.ControlIntroduction && m.Kind != wire.ControlEvaluation {
		return d, ErrKind
	}
	d.fields(&body, m.Kind)
	return d, body.Finish()
}

// fields writes or reads what a message of a kind says: what a member is called and who harms it,
// which releases before that drop, how good its model is, or how it gets on.
func (d *Digest) fields(c *wire.Coder, kind wire.ControlKind) {
	switch c.Uint64(&d.Incarnation); kind {
	case wire.ControlIntroduction:
		d.names(c)
		d.last(c, nil)
		return
	case wire.ControlEvaluation:
		d.Evaluation.Fields(c)
		return
	}
	for _, n := range []*uint64{&d.Steps, &d.FlockSteps, &d.Exchanges, &d.Failed} {
		c.Uint64(n)
	}
	c.Uint8((*uint8)(&d.State))
	known := d.Loss == finite(d.Loss)
	c.Bool(&known)
	for _, v := range []*float64{&d.Loss, &d.Samples, &d.ConsensusDistance} {
		if !c.Reading {
			*v = finite(*v)
		}
		c.Float(v)
	}
	if !known {
		if math.Float64bits(d.Loss) != 0 {
			c.Fault("a loss that is and is not")
		}
		d.Loss = math.NaN()
	}
	n := c.Count(min(len(d.Partners), wire.MaxPartners), 1, 0, wire.MaxPartners, "partners")
	if c.Reading {
		d.Partners = make([]Met, n)
	}
	for i, m := range d.Partners[:n] {
		mark, exchanges := m.fingerprint(), uint32(m.Exchanges)
		c.Uint64(&mark)
		if c.Uint32(&exchanges); c.Reading {
			d.Partners[i] = Met{mark: mark, Exchanges: uint64(exchanges)}
		}
	}
}

// last writes or reads what a message ends with: a harm; of a member, unless of is nil, the rows that it gives; alarms; and
// of a member its place and its stage. It is nothing where there are none, or none of what comes last. Bytes that are fewer, or come
// after them, are another release's.
func (d *Digest) last(c *wire.Coder, of *Member) {
	staged := of != nil && of.Stage > 0
	placed := staged || of != nil && of.Place != (topology.Place{})
	alarms := placed || d.Alarms != 0
	gives := of != nil && (alarms || of.Rows > 0)
	var rest []byte
	if told := wire.BodyWriter(); !c.Reading && (alarms || gives || d.Harm != (Harm{})) {
		if d.Harm.fields(&told); gives {
			told.Uint64(&of.Rows)
		}
		if alarms {
			told.Uint8((*uint8)(&d.Alarms))
		}
		if placed {
			of.place(&told)
		}
		if staged {
			told.Uint8(&of.Stage)
		}
		rest = told.Written()
	}
	if c.Remaining(&rest); !c.Reading {
		return
	}
	read := func(size int, field func(*wire.Coder)) (was bool) {
		if len(rest) < size {
			return false
		}
		told := wire.BodyReader(wire.TypeControl, rest[:size])
		rest = rest[size:]
		field(&told)
		if err := told.Finish(); err != nil {
			c.Fault("what it ends with: %v", err)
		}
		return true
	}
	all := read(harmSize, d.Harm.fields) && (of == nil || read(rowsSize, func(c *wire.Coder) { c.Uint64(&of.Rows) })) &&
		read(alarmsSize, func(c *wire.Coder) { c.Uint8((*uint8)(&d.Alarms)) })
	if all && of != nil && len(rest) > 0 {
		of.placeOf(rest)
	}
}

// names writes or reads what a member is called. Who reads it may show it on a terminal.
func (d *Digest) names(c *wire.Coder) {
	c.Text(&d.Name, 0, wire.MaxName)
	c.Text(&d.Version, 0, wire.MaxVersion)
	if c.Reading {
		d.Name, d.Version = Printable(d.Name), Printable(d.Version)
	}
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
