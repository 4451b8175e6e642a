package coding

// Pass is one attempt at the blocks of a slice, as its receiver sees it.
type Pass struct {
	// Width is what the blocks are coded with.
	Width Width
	// Which are the blocks that are coded; nil is all of them.
	Which Set
	// Limits has for each block the largest spacing that is accepted, 0 for none
	// at all: a block beyond fails without being looked at. Nil is no limit.
	Limits []float32
	// Halves are the blocks that may come as halves: those whose range the receiver
	// does not know, and those that failed when they were wide.
	Halves Set
	// Failed is where the blocks that could not be decoded are put: their checksum
	// is wrong, since the models are too far apart there, or their spacing beyond
	// the limit. It has SetSize bytes; what it held before is cleared.
	Failed Set
	// Seen, unless it is nil, receives the largest difference seen in each block
	// that was decoded. Others keep what they have.
	Seen []float32
}

func (p *Pass) has(block int) bool { return p.Which == nil || p.Which.Has(block) }

func (p *Pass) beyond(block int, spacing float32) bool {
	return p.Limits != nil && !(spacing <= p.Limits[block])
}
