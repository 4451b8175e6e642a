package coding

// Pass is one attempt to transfer the blocks of a slice, at its receiver.
type Pass struct {
	// Width is the width with which the blocks are coded.
	Width Width
	// Which has the coded blocks; nil is all blocks.
	Which Set
	// Limits has the largest accepted spacing of each block; 0 accepts none. A block beyond its limit fails without
	// being decoded. Nil is no limit.
	Limits []float32
	// Halves has the blocks that may be in half precision: those whose range the receiver does not know, and those
	// that failed at width Wide.
	Halves Set
	// Failed receives the blocks that could not be decoded: their checksum is wrong, since the models are too far
	// apart there, or their spacing is beyond the limit. It has SetSize bytes, which are cleared first.
	Failed Set
	// Seen, unless nil, receives the largest difference in each decoded block. Entries of other blocks do not change.
	Seen []float32
}

func (p *Pass) has(block int) bool { return p.Which == nil || p.Which.Has(block) }

func (p *Pass) beyond(block int, spacing float32) bool {
	return p.Limits != nil && !(spacing <= p.Limits[block])
}
