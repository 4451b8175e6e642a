package replica

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Receiver is the side of a transfer that takes. It is for one goroutine, and is reused
// from one transfer to the next; several may be at work on one replica.
type Receiver struct {
	passage
	factoring factoring
}

// Begin starts a transfer, as passage.Begin says.
func (p *Receiver) Begin(terms TransferTerms) error {
	p.factoring.matrix = -1
	return p.passage.Begin(terms)
}

// Part takes a PART in, all of it, or fails and changes nothing.
func (p *Receiver) Part(header wire.Header, payload []byte) error {
	info, code, err := wire.SplitPart(payload)
	if err != nil {
		return err
	}
	if header.Exchange != p.terms.Exchange || int(header.Slice) != p.next || p.next == p.end || info.Form != wire.FormInputs && int64(info.Pieces) > int64(p.end-p.next) {
		return fmt.Errorf("%d pieces from %d on of transfer %d, after those before %d of %d in transfer %d: %w",
			info.Pieces, header.Slice, header.Exchange, p.next, p.end, p.terms.Exchange, ErrOrder)
	}
	if info.Form == wire.FormInputs {
		if err := p.factoring.takeInputs(&p.passage, info, code); err != nil {
			return fmt.Errorf("taking in %d rows of inputs for piece %d: %w", info.Pieces, header.Slice, err)
		}
		return nil
	}
	if err := p.take(info, code); err != nil {
		return fmt.Errorf("taking in %d pieces from %d on: %w", info.Pieces, header.Slice, err)
	}
	p.next += int(info.Pieces)
	return nil
}

// take checks a run of pieces, and only then takes it in.
func (p *Receiver) take(info wire.PartInfo, code []byte) error {
	r := p.replica
	shared := r.pieces.slice(p.next)
	if p.next+int(info.Pieces) > r.pieces.first[shared+1] {
		return fmt.Errorf("pieces of several slices: %w", ErrOrder)
	}
	if from := p.terms.Transfer.From; from == collective.Parameters && info.Weight != 1 || from == collective.Gradient && info.Weight == 0 {
		return fmt.Errorf("%s of weight %g: %w", from, info.Weight, ErrImplausible)
	}
	codec, known := coding.ByID(coding.ID(info.Codec))
	if !known || !slices.Contains(p.terms.Codecs, codec.ID) {
		return fmt.Errorf("codec %d: %w", info.Codec, ErrCodec)
	}
	at := &r.slices[r.shared[shared]]
	from, to := r.pieces.span(shared, at.length, p.next, int(info.Pieces))
	var x tensor.Vector
	var err error
	switch {
	case info.Form == wire.FormErrors:
		x, err = p.factoring.multiply(&p.passage, info, at.offset+from, at.offset+to, code)
	case info.Weight > 0:
		x, err = decoded(codec.Code, code, p.scratch[:to-from], nil)
	}
	if err != nil {
		return err
	}
	norm := tensor.Norm2(x)
	at.Lock()
	defer at.Unlock()
	if implausible(norm, r.of(at)) {
		return fmt.Errorf("norm %g: %w", norm, ErrImplausible)
	}
	return p.keep(at, from, to, info, x)
}

// keep puts values, none if their weight is 0, where they belong. The caller holds the
// slice's lock.
func (p *Receiver) keep(at *slice, from, to int, info wire.PartInfo, x tensor.Vector) error {
	r := p.replica
	if p.terms.Transfer.Into == collective.Parameters {
		r.changing(at)
		copy(r.of(at)[from:to], x)
		at.begin(r.of(at))
		return nil
	}
	weights := r.buffers.weights[p.next:][:info.Pieces]
	own := at.in(r.buffers.sum)[from:to]
	scale := p.terms.scale(info.Weight)
	if p.terms.Transfer.Add {
		for _, w := range weights {
			if w+info.Weight > wire.MaxWeight {
				return fmt.Errorf("weight %g beside %g: %w", info.Weight, w, ErrImplausible)
			}
		}
		if info.Weight > 0 {
			tensor.Axpy(own, scale, x)
		}
	} else {
		clear(weights)
		clear(own[copy(own, x):]) // all of it, if the weight is 0
		if scale != 1 {
			tensor.Scale(own, scale)
		}
	}
	for i := range weights {
		weights[i] += info.Weight
	}
	return nil
}
