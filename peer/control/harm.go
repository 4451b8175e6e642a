package control

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// Harm is what exchanges with one partner do to a member, as the member judges it. It is a hint for
// people who look at a run, and proves nothing. The zero value is none.
type Harm struct {
	Partner transport.PeerID
	// Harm is by how much an exchange raises the member's loss, in units of what one with others
	// changes it by. Trust is how far the member believes the partner, 0 to 1.
	Harm, Trust float64

	mark uint64 // stands for the partner while it has no name
}

// harmSize is the number of bytes that a message says of harm.
const harmSize = 16

// named is the harm if its partner has a name here, by fingerprint, else none.
func (h Harm) named(names map[uint64]transport.PeerID) Harm {
	id, here := names[Met{Partner: h.Partner, mark: h.mark}.fingerprint()]
	if !here {
		return Harm{}
	}
	return Harm{Partner: id, Harm: h.Harm, Trust: h.Trust}
}

// last writes or reads what a message ends with: a harm; of a member, unless that is nil, the rows that it gives and
// its place besides; or nothing where there is none of these. Bytes that are fewer, or come after them, are a later
// release's.
func (h *Harm) last(c *wire.Coder, of *Member) {
	var rest []byte
	more := of != nil && (of.Rows > 0 || of.Place != topology.Place{})
	if !c.Reading && (more || *h != (Harm{})) {
		told := wire.BodyWriter()
		if h.fields(&told); more {
			of.told(&told)
		}
		rest = told.Written()
	}
	if c.Remaining(&rest); c.Reading && len(rest) >= harmSize {
		told := wire.BodyReader(wire.TypeControl, rest[:harmSize])
		h.fields(&told)
		if err := told.Finish(); err != nil {
			c.Fault("its harm: %v", err)
		}
	}
	if c.Reading && of != nil && len(rest) > harmSize {
		told := wire.BodyReader(wire.TypeMember, rest[harmSize:])
		of.told(&told)
		var later []byte
		if told.Remaining(&later); told.Finish() != nil || of.Place.Validate() != nil {
			of.Place = topology.Place{}
		}
	}
}

func (h *Harm) fields(c *wire.Coder) {
	mark := Met{Partner: h.Partner, mark: h.mark}.fingerprint()
	harm, trust := math.Float32bits(float32(min(max(finite(h.Harm), -math.MaxFloat32), math.MaxFloat32))), math.Float32bits(float32(h.Trust))
	c.Uint64(&mark)
	c.Uint32(&harm)
	if c.Uint32(&trust); !c.Reading || mark == 0 {
		return
	}
	*h = Harm{Harm: float64(math.Float32frombits(harm)), Trust: float64(math.Float32frombits(trust)), mark: mark}
	if h.Harm != finite(h.Harm) || !(h.Trust >= 0 && h.Trust <= 1) {
		c.Fault("a harm of %g and a trust of %g", h.Harm, h.Trust)
	}
}
