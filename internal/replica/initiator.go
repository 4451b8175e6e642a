package replica

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// Errors of an exchange's rules, to be tested with errors.Is. The exchange ends;
// slices that both sides have applied stay applied.
var (
	// ErrOrder: a frame names a slice or a count that does not follow.
	ErrOrder = errors.New("frame out of order")
	// ErrWindow: the partner sends beyond the agreed window.
	ErrWindow = errors.New("more slices in flight than agreed")
	// ErrAbsurd: the distance between the two models is not a finite number.
	ErrAbsurd = errors.New("absurd distance between the models")
)

// Initiator is the active side of an exchange: it sends the codes of its slices
// and applies the differences that come back. It is reused from one exchange to
// the next. Code and Diff may be called from two goroutines, one each.
type Initiator struct {
	replica  *Replica
	exchange uint64
	codec    quant.Codec
	window   int

	coded   atomic.Int32 // slices sent
	applied atomic.Int32 // slices whose difference has been applied

	own     tensor.Vector // scratch of Code
	diff    tensor.Vector // scratch of Diff
	squared float64       // sum of the slices' squared distances
}

// NewInitiator makes an initiator for exchanges of a replica.
func NewInitiator(r *Replica) *Initiator {
	return &Initiator{replica: r, own: make(tensor.Vector, r.sliceLen), diff: make(tensor.Vector, r.sliceLen)}
}

// Begin starts an exchange with at most window slices in flight, up to
// MaxWindow. The one before must be over.
func (a *Initiator) Begin(exchange uint64, codec quant.Codec, window int) {
	a.exchange, a.codec, a.window = exchange, codec, min(max(window, 1), MaxWindow)
	a.coded.Store(0)
	a.applied.Store(0)
	a.squared = 0
}

// Code writes the frame of the next slice into frame, whose memory it reuses.
// ok is false if the window is full or every slice has been sent: call again
// after the next Diff.
func (a *Initiator) Code(frame []byte) (_ []byte, ok bool, err error) {
	next := int(a.coded.Load())
	applied := a.applied.Load()
	if next == len(a.replica.shared) || next-int(applied) >= a.window {
		return frame, false, nil
	}
	own := a.replica.readSlice(&a.replica.slices[a.replica.shared[next]], a.own)
	frame = wire.AppendCodeInfo(wire.Reserve(frame), wire.CodeInfo{Bound: float32(math.Inf(1))})
	frame = appendEncoded(frame, a.codec.Code, own)
	header := wire.Header{Type: wire.TypeCode, Exchange: a.exchange, Slice: uint32(next), Ack: uint32(applied)}
	if err := wire.Seal(frame, header); err != nil {
		return frame, false, fmt.Errorf("coding slice %d: %w", next, err)
	}
	a.coded.Add(1)
	return frame, true, nil
}

// Diff applies the difference that the partner answered with.
func (a *Initiator) Diff(header wire.Header, payload []byte) error {
	index := int(a.applied.Load())
	if int(header.Slice) != index || header.Exchange != a.exchange || index >= int(a.coded.Load()) {
		return fmt.Errorf("difference of slice %d of exchange %d where slice %d of %d was due: %w", header.Slice, header.Exchange, index, a.exchange, ErrOrder)
	}
	s := &a.replica.slices[a.replica.shared[index]]
	_, code, err := wire.SplitDiff(payload)
	if err != nil {
		return fmt.Errorf("difference of slice %d: %w", index, err)
	}
	diff := a.diff[:s.length]
	if err := a.codec.Diff.Decode(diff, code, nil); err != nil {
		return fmt.Errorf("difference of slice %d: %w", index, err)
	}
	a.replica.subSlice(s, diff)
	a.squared += tensor.SumSquares(diff) / (Weight * Weight) // not the partner's word for it
	a.applied.Add(1)
	return nil
}

// Done tells whether every slice has been applied at this side.
func (a *Initiator) Done() bool { return int(a.applied.Load()) == len(a.replica.shared) }

// Ack writes the frame that acknowledges what has been applied so far, for when
// no CODE is left to carry it.
func (a *Initiator) Ack(frame []byte) ([]byte, error) {
	frame = wire.Reserve(frame)
	err := wire.Seal(frame, wire.Header{Type: wire.TypeAck, Exchange: a.exchange, Ack: uint32(a.applied.Load())})
	return frame, err
}

// Applied is the number of slices applied at this side.
func (a *Initiator) Applied() int { return int(a.applied.Load()) }

// Distance is the distance between the two models that the slices showed. It is
// complete once Done.
func (a *Initiator) Distance() float64 { return math.Sqrt(a.squared) }

// appendEncoded appends the code of x to dst.
func appendEncoded(dst []byte, coder quant.Coder, x tensor.Vector) []byte {
	start, size := len(dst), coder.Size(len(x))
	if cap(dst)-start < size {
		grown := make([]byte, start, start+size)
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:start+size]
	coder.Encode(dst[start:], x)
	return dst
}
