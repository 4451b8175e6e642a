package replica

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// MaxWindow bounds the slices in flight of one exchange, and with it the
// memory that a responder keeps pending.
const MaxWindow = 16

// Weight is the share of the difference by which each side moves when neither
// takes part in another exchange: both end at the mean.
const Weight = 0.5

// Responder is the passive side of an exchange: it answers each slice's code
// with the difference, and adds that difference to its own slice only once the
// partner has acknowledged applying it. It is reused from one exchange to the
// next and used by one goroutine at a time.
type Responder struct {
	replica  *Replica
	exchange uint64
	codec    quant.Codec
	window   int
	next     int // the slice whose code is due
	applied  int // slices applied at both sides

	own, decoded tensor.Vector   // scratch
	pending      []tensor.Vector // a ring: slice i waits at i mod window
	squared      float64
}

// NewResponder makes a responder for exchanges of a replica.
func NewResponder(r *Replica) *Responder {
	return &Responder{replica: r, own: make(tensor.Vector, r.sliceLen), decoded: make(tensor.Vector, r.sliceLen)}
}

// Begin starts an exchange with at most window slices in flight, up to
// MaxWindow. The one before must be over.
func (p *Responder) Begin(exchange uint64, codec quant.Codec, window int) {
	p.exchange, p.codec, p.window = exchange, codec, min(max(window, 1), MaxWindow)
	for len(p.pending) < p.window {
		p.pending = append(p.pending, make(tensor.Vector, p.replica.sliceLen))
	}
	p.next, p.applied, p.squared = 0, 0, 0
}

// Code answers the code of the next slice: it writes the DIFF frame into reply,
// whose memory it reuses. First it applies what the header acknowledges.
func (p *Responder) Code(header wire.Header, payload, reply []byte) ([]byte, error) {
	if err := p.Ack(header); err != nil {
		return reply, err
	}
	if int(header.Slice) != p.next || p.next == len(p.replica.shared) {
		return reply, fmt.Errorf("code of slice %d where slice %d of %d was due: %w", header.Slice, p.next, len(p.replica.shared), ErrOrder)
	}
	if p.next-p.applied >= p.window {
		return reply, fmt.Errorf("code of slice %d with %d unacknowledged: %w", p.next, p.next-p.applied, ErrWindow)
	}
	_, code, err := wire.SplitCode(payload)
	if err != nil {
		return reply, fmt.Errorf("code of slice %d: %w", p.next, err)
	}
	own := p.replica.readSlice(&p.replica.slices[p.replica.shared[p.next]], p.own)
	theirs := p.decoded[:len(own)]
	if err := p.codec.Code.Decode(theirs, code, own); err != nil {
		return reply, fmt.Errorf("code of slice %d: %w", p.next, err)
	}
	squared := tensor.SquaredDistance(theirs, own)
	if math.IsNaN(squared) || math.IsInf(squared, 0) {
		return reply, fmt.Errorf("code of slice %d: %w", p.next, ErrAbsurd)
	}
	tensor.ScaledDifference(theirs, Weight, theirs, own)
	return p.answer(theirs, squared, reply)
}

// answer encodes a difference and keeps pending what the partner will decode.
func (p *Responder) answer(diff tensor.Vector, squared float64, reply []byte) ([]byte, error) {
	reply = wire.AppendDiffInfo(wire.Reserve(reply), wire.DiffInfo{SquaredDistance: squared})
	start := len(reply)
	reply = appendEncoded(reply, p.codec.Diff, diff)
	pending := p.pending[p.next%p.window][:len(diff)]
	if err := p.codec.Diff.Decode(pending, reply[start:], nil); err != nil {
		return reply, fmt.Errorf("difference of slice %d: %w", p.next, err)
	}
	header := wire.Header{Type: wire.TypeDiff, Exchange: p.exchange, Slice: uint32(p.next)}
	if err := wire.Seal(reply, header); err != nil {
		return reply, fmt.Errorf("difference of slice %d: %w", p.next, err)
	}
	p.squared += squared
	p.next++
	return reply, nil
}

// Ack applies the pending differences that the partner has acknowledged.
func (p *Responder) Ack(header wire.Header) error {
	if header.Exchange != p.exchange {
		return fmt.Errorf("frame of exchange %d in exchange %d: %w", header.Exchange, p.exchange, ErrOrder)
	}
	acknowledged := int(header.Ack)
	if acknowledged < p.applied || acknowledged > p.next {
		return fmt.Errorf("acknowledgement of %d slices after %d of %d: %w", acknowledged, p.applied, p.next, ErrOrder)
	}
	for ; p.applied < acknowledged; p.applied++ {
		s := &p.replica.slices[p.replica.shared[p.applied]]
		p.replica.addSlice(s, p.pending[p.applied%p.window])
	}
	return nil
}

// Done tells whether every slice has been applied at both sides.
func (p *Responder) Done() bool { return p.applied == len(p.replica.shared) }

// InDoubt is the number of slices that the partner may have applied and this
// side has not. When an exchange breaks off they are dropped: the mean of the
// flock then moves by at most their distance over twice the number of peers.
func (p *Responder) InDoubt() int { return p.next - p.applied }

// Distance is the distance between the two models that the slices showed. It is
// complete once Done.
func (p *Responder) Distance() float64 { return math.Sqrt(p.squared) }
