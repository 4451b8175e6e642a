package replica

import (
	"fmt"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Sender is the side of a transfer that gives. It is for one goroutine, and is reused
// from one transfer to the next; several may be at work on one replica.
//
// A Sender that passes a sum on leaves in the sum what its code decodes to, so that the
// receivers, who pass it on in these parts and in larger ones, all end with the same bytes.
//
// That takes codecs whose code of what they have decoded is the same again, as it is of
// all that transfers take.
type Sender struct {
	passage
	told  told
	coded tensor.Vector // what the code of a run of pieces decodes to
}

// Begin starts a transfer, as passage.Begin says.
func (s *Sender) Begin(terms TransferTerms) error {
	s.told = told{matrix: -1}
	return s.passage.Begin(terms)
}

// Next writes the next PART into frame, whose memory it reuses. ok is false if there is
// none left. It fails with ErrDiverged or ErrTooLarge if the values cannot be sent, and
// with ErrStopped as the terms say.
func (s *Sender) Next(frame []byte) (_ []byte, ok bool, err error) {
	if s.next == s.end {
		return frame, false, nil
	}
	r := s.replica
	shared := r.pieces.slice(s.next)
	at := &r.slices[r.shared[shared]]
	at.Lock()
	if stopped := s.terms.Stopped; stopped != nil && stopped.Load() {
		at.Unlock() // what the buffer holds may be another attempt's by now
		return frame, false, ErrStopped
	}
	count, weight := s.run(shared)
	codec := r.codec(s.terms.Plan, shared, shared)
	info := wire.PartInfo{Weight: weight, Codec: uint8(codec.ID), Pieces: uint32(count)}
	if frame, err = s.told.encode(&s.passage, frame, &info, at, shared); info.Form == wire.FormValues && err == nil {
		from, to := r.pieces.span(shared, at.length, s.next, int(info.Pieces))
		frame, err = s.encode(frame, at, from, to, codec, weight)
	}
	at.Unlock()
	if err != nil {
		return frame, false, fmt.Errorf("coding %d pieces from %d on of %s: %w", info.Pieces, s.next, s.terms.Transfer.From, err)
	}
	wire.AppendPartInfo(frame[:wire.HeaderSize], info)
	err = wire.Seal(frame, wire.Header{Type: wire.TypePart, Exchange: s.terms.Exchange, Slice: uint32(s.next)})
	if info.Form != wire.FormInputs {
		s.next += int(info.Pieces)
	}
	return frame, err == nil, err
}

// run is the number of pieces, from the next one on, that are of one slice and one
// weight. The caller holds the slice's lock.
func (s *Sender) run(shared int) (count int, weight float64) {
	r := s.replica
	count = min(s.end, r.pieces.first[shared+1]) - s.next
	switch s.terms.Transfer.From {
	case collective.Gradient:
		return count, r.slices[r.shared[shared]].samples
	case collective.Sum:
		weights := r.buffers.weights[s.next : s.next+count]
		return alike(weights), weights[0]
	}
	return count, 1
}

// encode begins a frame with the code of a run of a slice's values. The caller holds the slice's lock.
func (s *Sender) encode(frame []byte, at *slice, from, to int, codec coding.Codec, weight float64) ([]byte, error) {
	frame = extend(wire.Reserve(frame), wire.PartInfoSize)
	switch {
	case weight == 0 && s.terms.Transfer.From == collective.Gradient:
		return frame, fmt.Errorf("there is none: %w", ErrTransfer)
	case weight == 0:
		return frame, nil
	}
	values := at.in(s.replica.vector(s.terms.Transfer.From))[from:to]
	head, scale := len(frame), s.terms.scale(weight)
	if s.terms.Transfer.From != collective.Sum {
		scale = 1 // what is coded is the value itself
	}
	x := values
	if scale != 1 {
		x = s.scratch[:len(values)]
		copy(x, values)
		tensor.Scale(x, 1/scale)
	}
	if err := sendable(x, s.replica.of(at), codec); err != nil {
		return frame, err
	}
	frame = extend(frame, codec.Code.Size(len(x)))
	codec.Code.Encode(frame[head:], x)
	if codec.ID == coding.Raw || s.terms.Transfer.From == collective.Parameters {
		return frame, nil
	}
	s.coded = ring(s.coded, len(s.scratch))
	coded := s.coded[:len(values)]
	if err := codec.Code.Decode(coded, frame[head:], nil); err != nil {
		return frame, err
	}
	if scale != 1 {
		tensor.Scale(coded, scale)
	}
	unit, again := float32(1), s.terms.Transfer.From == collective.Gradient
	if again { // what is lost of the mean counts with its weight
		unit = float32(weight)
	}
	s.replica.buffers.rounding.note(at.offset+from, values, coded, unit, again)
	if s.terms.passed() {
		copy(values, coded)
	}
	return frame, nil
}

// halfMost is the largest number that fp16 holds.
const halfMost = 65504

// sendable tells why values would be refused by an honest receiver.
func sendable(x, own tensor.Vector, codec coding.Codec) error {
	if norm := 2 * tensor.Norm2(x); implausible(norm, own) {
		return fmt.Errorf("norm %g: %w", norm/2, ErrDiverged)
	}
	if codec.ID == coding.FP16 && tensor.MaxAbs(x) > halfMost {
		return fmt.Errorf("%s holds up to %d: %w", codec.Name, halfMost, ErrTooLarge)
	}
	return nil
}
