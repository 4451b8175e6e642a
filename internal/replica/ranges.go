package replica

import (
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// A lattice codes a block so that a partner with near values can decode it. How near is the
// block's range, kept by each slice: the largest difference that exchanges have shown
// there, limited by the trust in the partner. It rises at once and falls by a fifth. The
// passive side sends its ranges before the first code.

// maxRanges is the most bytes of ranges in a frame.
const maxRanges = 64 << 10

// blockSets places a set of blocks for every slice in one array.
type blockSets struct {
	bits    []byte
	offsets []int32
}

// sized makes room for the sets of a replica's slices, all empty.
func (b *blockSets) sized(r *Replica) {
	if len(b.offsets) != len(r.shared) {
		b.offsets = make([]int32, len(r.shared))
		size := 0
		for i := range r.shared {
			b.offsets[i] = int32(size)
			size += coding.SetSize(r.lengthOf(i))
		}
		b.bits = make([]byte, size)
	}
	clear(b.bits)
}

// of is the set of a slice.
func (b *blockSets) of(r *Replica, slice int) coding.Set {
	from := int(b.offsets[slice])
	to := from + coding.SetSize(r.lengthOf(slice))
	return b.bits[from:to:to]
}

// latticed tells whether a list of codecs holds one that needs ranges.
func latticed(codecs []coding.ID) bool {
	for _, id := range codecs {
		if c, known := coding.ByID(id); known && c.Lattice != (coding.Lattice{}) {
			return true
		}
	}
	return false
}

// sighting is what an answer shows an initiator about the partner's slice.
type sighting struct {
	claimed  float64 // the distance according to the partner
	distance float64 // as the difference shows it, clipped to both sides' bounds
	failed   coding.Set
	peaks    []float32 // the largest difference that it shows in each block of the part
}

// maxBlocks is the most blocks of a slice.
const maxBlocks = wire.MaxSliceLen / coding.BlockLen
