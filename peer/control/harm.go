package control

import (
	"math"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
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

// harmSize, rowsSize and alarmsSize are the numbers of bytes that a message says of harm, rows and alarms.
const harmSize, rowsSize, alarmsSize = 16, 8, 1

// named is the harm if its partner has a name here, by fingerprint, else none.
func (h Harm) named(names map[uint64]transport.PeerID) Harm {
	id, here := names[Met{Partner: h.Partner, mark: h.mark}.fingerprint()]
	if !here {
		return Harm{}
	}
	return Harm{Partner: id, Harm: h.Harm, Trust: h.Trust}
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
