package sums

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// MaxGather is the most bytes that one member may bring to a Gather, MaxGathered those that all
	// may bring together.
	MaxGather   = 64 << 20
	MaxGathered = 8 * MaxGather
	// MaxLength is the most numbers in a sum.
	MaxLength = 1 << 27
	// stepTold is what a step counts in what others are told of progress.
	stepTold = 1 << 12
)

// ring is a participant's part of one attempt. What it brings is cut in as many chunks as the
// ring has members, of which it sends one at each step: at step s the chunk rank-s, which it
// has from the one before since step s-1. In the first size-1 steps chunks are summed on
// their way, after which each member has one that is complete; in the next these go round. What
// is gathered only goes round.
type ring struct {
	name           string
	op             Op
	attempt        uint64
	rank, size     int
	next, previous ID

	values []float64 // of Add and Max, as far as they are summed
	blocks [][]byte  // of Gather, by rank

	step   int    // that is being taken from the one before
	offset uint64 // of its bytes that have come
	total  uint64 // bytes of the step of which some came last

	spoiler ID  // who handed on a number that is not finite before all had added theirs
	excess  int // rank of who brought most, if all bring too much; else -1
}

func newRing(call *Call, place *wire.Sum) *ring {
	r := &ring{
		name: call.Name, op: call.Op, attempt: place.Attempt, rank: int(place.Rank), size: int(place.Size),
		next: ID(place.Next), previous: ID(place.Previous), excess: -1,
	}
	if r.op == Gather {
		r.blocks = make([][]byte, r.size)
		r.blocks[r.rank] = slices.Clone(call.Data)
	} else {
		r.values = slices.Clone(call.Vector)
	}
	return r
}

// steps is how many a member takes, and sends.
func (r *ring) steps() int { return stepsOf(r.op, r.size) }

func stepsOf(op Op, size int) int {
	if op == Gather {
		return size - 1
	}
	return 2 * (size - 1)
}

// progress is how much has come, in steps.
func (r *ring) progress() uint32 {
	return uint32(r.step)*stepTold + uint32(r.offset*(stepTold-1)/max(r.total, 1))
}

// complete tells whether the sum is here.
func (r *ring) complete() bool { return r.step == r.steps() }

// chunk is the number of the chunk that a member sends at a step.
func (r *ring) chunk(rank, step int) int { return ((rank-step)%r.size + r.size) % r.size }

// bounds are the values of a chunk.
func (r *ring) bounds(chunk int) (from, to int) {
	n := len(r.values)
	return chunk * n / r.size, (chunk + 1) * n / r.size
}

// begin sends what needs nothing from others.
func (r *ring) begin(send func(wire.Share)) {
	if r.steps() > 0 {
		r.sendChunk(0, send)
	}
}

// sendChunk sends all of a step.
func (r *ring) sendChunk(step int, send func(wire.Share)) {
	chunk := r.chunk(r.rank, step)
	if r.op == Gather {
		data := r.blocks[chunk]
		for offset := 0; offset == 0 || offset < len(data); offset += wire.MaxShare {
			r.send(step, uint64(offset), uint64(len(data)), data[offset:min(offset+wire.MaxShare, len(data))], send)
		}
		return
	}
	from, to := r.bounds(chunk)
	const most = wire.MaxShare / wire.NumberSize
	for at := from; at == from || at < to; at += most {
		r.sendValues(step, from, to, at, min(at+most, to), send)
	}
}

// sendValues sends some values of the chunk from..to: themselves, no copy. They change again only
// after they have been all round.
func (r *ring) sendValues(step, from, to, at, end int, send func(wire.Share)) {
	send(wire.Share{
		Name: r.name, Attempt: r.attempt, Step: uint32(step),
		Offset: uint64(at-from) * wire.NumberSize, Total: uint64(to-from) * wire.NumberSize, Values: r.values[at:end],
	})
}

func (r *ring) send(step int, offset, total uint64, data []byte, send func(wire.Share)) {
	send(wire.Share{Name: r.name, Attempt: r.attempt, Step: uint32(step), Offset: offset, Total: total, Data: data})
}

// take takes what has come from the one before, and sends it on. It reports false if that is not
// what comes next.
func (r *ring) take(s *wire.Share, send func(wire.Share)) bool {
	due := !r.complete() && int(s.Step) == r.step && s.Offset == r.offset
	if !due || len(s.Data) == 0 && s.Total > 0 {
		return false
	}
	took := r.takeValues
	if r.op == Gather {
		took = r.takeBlock
	}
	if !took(s, send) {
		return false
	}
	r.total = s.Total
	if r.offset += uint64(len(s.Data)); r.offset == s.Total {
		r.step, r.offset = r.step+1, 0
	}
	return true
}

// gathered is how many bytes are here of a gathering.
func (r *ring) gathered() (bytes uint64) {
	for _, block := range r.blocks {
		bytes += uint64(len(block))
	}
	return bytes
}

func (r *ring) takeBlock(s *wire.Share, send func(wire.Share)) bool {
	chunk := r.chunk(r.rank-1, r.step)
	if s.Total > MaxGather || len(r.blocks[chunk]) != int(s.Offset) || s.Offset > 0 && s.Total != r.total {
		return false
	}
	if s.Offset == 0 && r.gathered()+s.Total > MaxGathered {
		r.excess = chunk
		for rank, block := range r.blocks {
			if len(block) > max(int(s.Total), len(r.blocks[r.excess])) {
				r.excess = rank
			}
		}
		return false
	}
	r.blocks[chunk] = append(r.blocks[chunk], s.Data...)
	if next := r.step + 1; next < r.steps() {
		r.send(next, s.Offset, s.Total, slices.Clone(s.Data), send)
	}
	return true
}

func (r *ring) takeValues(s *wire.Share, send func(wire.Share)) bool {
	from, to := r.bounds(r.chunk(r.rank-1, r.step))
	if s.Total != uint64(to-from)*wire.NumberSize || len(s.Data)%wire.NumberSize != 0 || s.Offset%wire.NumberSize != 0 {
		return false
	}
	at := from + int(s.Offset)/wire.NumberSize
	end := at + len(s.Data)/wire.NumberSize
	r.combine(r.values[at:end], s)
	if next := r.step + 1; next < r.steps() {
		r.sendValues(next, from, to, at, end, send)
	}
	return true
}

// combine takes values as those before have summed them, or as they all are.
func (r *ring) combine(dst []float64, s *wire.Share) {
	odd := 0.0 // NaN once a number is not finite
	switch {
	case r.step >= r.size-1:
		for i := range dst {
			dst[i] = s.Number(i)
		}
	case r.op == Add:
		for i := range dst {
			came := s.Number(i)
			odd += came - came
			dst[i] += came
		}
	default:
		for i := range dst {
			came := s.Number(i)
			odd += came - came
			dst[i] = max(dst[i], came)
		}
	}
	if odd != 0 && r.spoiler == "" {
		r.spoiler = r.previous
	}
}
