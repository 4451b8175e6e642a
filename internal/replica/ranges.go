package replica

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
)

// A lattice codes a block so that the partner, whose values are near, can tell what was
// meant. How near is a range that each slice keeps for each of its blocks: the largest
// difference that exchanges have shown there, as far as the partner is believed, up at
// once and down by a fifth. The passive side tells its own before the first code.

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
			size += quant.SetSize(r.lengthOf(i))
		}
		b.bits = make([]byte, size)
	}
	clear(b.bits)
}

// of is the set of a slice.
func (b *blockSets) of(r *Replica, slice int) quant.Set {
	from := int(b.offsets[slice])
	to := from + quant.SetSize(r.lengthOf(slice))
	return b.bits[from:to:to]
}

// lengthOf is the number of values of a slice of an exchange.
func (r *Replica) lengthOf(slice int) int { return r.slices[r.shared[slice]].length }

// latticed tells whether a list of codecs holds one that needs ranges.
func latticed(codecs []quant.ID) bool {
	for _, id := range codecs {
		if c, known := quant.ByID(id); known && c.Lattice != (quant.Lattice{}) {
			return true
		}
	}
	return false
}

// beginRanges begins an exchange in which, if a codec needs it, ranges are told.
func (p *Responder) beginRanges() {
	p.ranging, p.told = latticed(p.terms.Codecs), 0
	p.failed.Store(0)
	p.halved.Store(0)
	if p.ranging {
		p.unknown.sized(p.replica)
		p.asked.sized(p.replica)
	}
}

// Ranges writes into frame, whose memory it reuses, the next of the frames that tell
// the partner this side's ranges. ok is false if there is none left, or none is
// needed. They are to be sent, all of them, on the first lane before anything else.
func (p *Responder) Ranges(frame []byte) (_ []byte, ok bool, err error) {
	r := p.replica
	if !p.ranging || p.told == len(r.shared) {
		return frame, false, nil
	}
	first := p.told
	frame = wire.Reserve(frame)
	for ; p.told < len(r.shared); p.told++ {
		blocks := quant.Blocks(r.lengthOf(p.told))
		if len(frame)+blocks > wire.HeaderSize+maxRanges {
			break
		}
		at := len(frame)
		frame = extend(frame, blocks)
		p.tell(p.told, frame[at:])
	}
	err = wire.Seal(frame, wire.Header{Type: wire.TypeRanges, Exchange: p.terms.Exchange, Slice: uint32(first)})
	return frame, true, err
}

// tell writes the ranges of a slice, and notes which of them are unknown.
func (p *Responder) tell(slice int, codes []byte) {
	s := &p.replica.slices[p.replica.shared[slice]]
	s.Lock()
	quant.PutRanges(codes, s.ranges)
	s.Unlock()
	unknown := p.unknown.of(p.replica, slice)
	for i, c := range codes {
		if c == 0 {
			unknown.Put(i)
		}
	}
}

// Ranged tells whether all ranges that the partner has to tell have come: only then
// can lanes code.
func (a *Initiator) Ranged() bool { return !a.ranging || a.heard == len(a.replica.shared) }

// Ranges takes a frame of the partner's ranges.
func (a *Initiator) Ranges(header wire.Header, codes []byte) error {
	r := a.replica
	if a.Ranged() || int(header.Slice) != a.heard || header.Exchange != a.terms.Exchange || len(codes) == 0 {
		return fmt.Errorf("%d ranges from slice %d of exchange %d on, after those of %d: %w",
			len(codes), header.Slice, header.Exchange, a.heard, ErrOrder)
	}
	for a.heard < len(r.shared) && len(codes) > 0 {
		blocks := quant.Blocks(r.lengthOf(a.heard))
		if len(codes) < blocks {
			return fmt.Errorf("%d ranges for the %d blocks of slice %d: %w", len(codes), blocks, a.heard, quant.ErrSize)
		}
		a.theirs = append(a.theirs, codes[:blocks]...)
		codes = codes[blocks:]
		a.heard++
	}
	if len(codes) > 0 {
		return fmt.Errorf("%d ranges beyond the last slice: %w", len(codes), quant.ErrSize)
	}
	return nil
}

// sighting is what an answer tells an initiator of the partner's slice.
type sighting struct {
	distance, limit float64
	failed          quant.Set
	peaks           []float32 // the largest difference in each block of the part
	share           float64   // of the peaks that is believed
}

// unweigh turns the peaks of a weighted and clipped difference into those of the models:
// the norm of the difference and the distance, which the partner may only claim, tell
// the share.
func (s *sighting) unweigh(weight, shown float64) {
	share := weight
	s.share = 1
	if s.distance > 0 && shown > 0 {
		share = weight * shown / s.distance
		s.share = min(1, boundGrowth*shown/s.distance)
	}
	for i, peak := range s.peaks {
		s.peaks[i] = float32(float64(peak) / share)
	}
}

// track takes the largest differences seen in the blocks of a part, no more than most
// each, into the ranges of the slice. The caller holds the slice's lock.
func (s *slice) track(p *part, seen sighting, most float64) {
	if len(seen.peaks) == 0 {
		return
	}
	which, next := p.which(), 0
	for i := range s.ranges {
		if which != nil && !which.Has(i) {
			continue
		}
		if !seen.failed.Has(i) {
			s.trackBlock(i, min(float64(seen.peaks[next]), most), seen.share)
		}
		next++
	}
}

// rangeGrowth is how many times its range a block's may be after one exchange, in any
// case. More, and a liar among several partners makes ranges grow faster than the others
// take off again; less, and blocks of honest partners fail again and again.
const rangeGrowth = 1.5

// trackBlock takes the largest difference seen in a block into its range, of which a
// share is believed: that by which the slice is clipped. A liar is not to make lattices
// so coarse that honest partners tell each other nothing with them, and an honest partner
// that is far away must not fail again and again: what exceeds the share comes in steps.
func (s *slice) trackBlock(i int, seen, share float64) {
	own := s.ranges[i]
	s.ranges[i] = quant.Track(own, float32(min(seen, max(share*seen, rangeGrowth*float64(own)))))
}

// maxBlocks is the most blocks of a slice.
const maxBlocks = wire.MaxSliceLen / quant.BlockLen
