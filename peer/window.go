package peer

import (
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// windowBytes is what a lane has in flight in a direction, unless the configuration
// says another number of slices. It is what a link of 200 Mbit/s and 40 ms takes.
const windowBytes = 1 << 20

// window is the number of slices in flight on each lane of an exchange that this peer
// initiates: whatever the codec, about as many bytes.
func (p *Peer) window(plan quant.Plan) int {
	if n := p.config.Exchange.Window; n > 0 {
		return n
	}
	bits, values := 0.0, 0
	for i, l := range p.plans.layers {
		bits += plan.Bits(i) * float64(l.Len)
		values += l.Len
	}
	slice := bits / float64(max(values, 1)) * float64(p.replica.SliceLen()) / 8
	return min(max(int(windowBytes/max(slice, tensor.ValueSize)), 1), replica.MaxWindow)
}

// granted is the number of slices in flight that this peer allows its partners, who
// know what they code them with.
func (p *Peer) granted() int {
	if n := p.config.Exchange.Window; n > 0 {
		return n
	}
	return replica.MaxWindow
}
