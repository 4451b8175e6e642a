package replica

import (
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// attempts is how often a block can be sent in an exchange: as the codec has it, then
// wider, then as halves.
const attempts = 3

// maxSetSize is the most bytes of a set of a slice's blocks.
const maxSetSize = (wire.MaxSliceLen/coding.BlockLen + 7) / 8

// part is what one CODE carries of a slice: all of it or, after an attempt that failed
// for some blocks, those.
type part struct {
	slice   int // index among the shared
	attempt int
	size    int // bytes of blocks in use; 0 is the whole slice
	blocks  [maxSetSize]byte
}

// which is the set of the part's blocks; nil is all.
func (p *part) which() coding.Set {
	if p.size == 0 {
		return nil
	}
	return p.blocks[:p.size]
}

// rest is the part that has yet to be sent again, of a part of which these blocks have
// failed.
func (p *part) rest(failed coding.Set) part {
	next := part{slice: p.slice, attempt: p.attempt + 1, size: len(failed)}
	copy(next.blocks[:], failed)
	return next
}

// unit numbers parts as the wire does, of an exchange of n slices.
func (p *part) unit(n int) int { return p.attempt*n + p.slice }

// values is how many of a slice's values the part has.
func (p *part) values(length int) int {
	if p.size == 0 {
		return length
	}
	return p.which().Values(length)
}
