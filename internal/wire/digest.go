package wire

import "math"

// Digest is what a peer tells of itself.
type Digest struct {
	Incarnation       uint64
	Steps, FlockSteps uint64
	Exchanges, Failed uint64
	// State is as package peer numbers it.
	State uint8
	// HasLoss tells whether Loss is known; where it is not, Loss is 0.
	HasLoss bool
	// Loss, Samples a second and Distance are finite.
	Loss, Samples, Distance float64
	// Met is the number of Partners that are given.
	Met      uint8
	Partners [MaxDigestPartners]DigestPartner
}

// MaxDigestPartners bounds the partners that a digest tells of.
const MaxDigestPartners = 16

// DigestPartner tells of exchanges that the author of a digest began with one partner.
type DigestPartner struct {
	// Mark stands for the partner's id (FNV-1a, 64 bits): it is a hint for people who
	// look at a run, and proves nothing.
	Mark uint64
	// Exchanges counts those that completed.
	Exchanges uint32
}

// Append appends the encoded body to dst.
func (b Digest) Append(dst []byte) []byte { return b.fields(writer(dst)).out }

// Decode reads a body into b.
func (b *Digest) Decode(body []byte) error { return b.fields(reader(TypeControl, body)).Finish() }

func (b *Digest) fields(c Coder) Coder {
	c.uint64s(&b.Incarnation, &b.Steps, &b.FlockSteps, &b.Exchanges, &b.Failed)
	c.Uint8(&b.State)
	c.Bool(&b.HasLoss)
	c.floats(&b.Loss, &b.Samples, &b.Distance)
	if !b.HasLoss && math.Float64bits(b.Loss) != 0 {
		c.Fault("a loss that is and is not")
	}
	b.Met = uint8(c.Count(int(b.Met), 1, 0, MaxDigestPartners, "partners"))
	if c.Reading {
		b.Partners = [MaxDigestPartners]DigestPartner{}
	}
	for i := range b.Partners[:b.Met] {
		c.Uint64(&b.Partners[i].Mark)
		c.Uint32(&b.Partners[i].Exchanges)
	}
	return c
}
