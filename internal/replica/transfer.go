package replica

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// Errors of transfers, beside those of exchanges, to be tested with errors.Is.
var (
	// ErrTransfer: a transfer between buffers, or of a part, that cannot be.
	ErrTransfer = errors.New("no such transfer")
	// ErrLattice: a codec that decodes against a model near the sender's, which the
	// receiver of a transfer need not have.
	ErrLattice = errors.New("codec for exchanges only: transfers take raw, bf16, fp16 or int8")
	// ErrStopped: the transfer was broken off.
	ErrStopped = errors.New("the transfer is over")
	// ErrTooLarge: values that the codec cannot hold.
	ErrTooLarge = errors.New("values too large for the codec: use bf16 or raw")
)

// TransferTerms are what the two sides of a transfer have agreed.
type TransferTerms struct {
	// Exchange is the number that the sender gave to the transfer.
	Exchange uint64
	// Transfer is what is moved.
	Transfer collective.Transfer
	// Plan says what the sender codes each slice with. A receiver needs none.
	Plan coding.Plan
	// Codecs are those that the receiver takes. Default: those of Plan.
	Codecs []coding.ID
	// Stopped, if there is one, says that the transfer is over: from the moment in which
	// it is true a sender changes nothing.
	Stopped *atomic.Bool
}

// Check tells what is wrong with the terms, whatever the model: it fails with
// ErrTransfer, ErrLattice or ErrCodec.
func (t TransferTerms) Check() error {
	m := t.Transfer
	known := m.From < collective.Buffers && m.Into < collective.Buffers
	switch {
	case !known, m.From != m.Into && !(m.From == collective.Gradient && m.Into == collective.Sum),
		m.Into == collective.Gradient, m.Into == collective.Parameters && m.Add:
		return fmt.Errorf("replica: %s: %w", m, ErrTransfer)
	case m.Parts < 1 || m.Parts > wire.MaxParts || m.Part < 0 || m.Part >= m.Parts:
		return fmt.Errorf("replica: %s: want 1 to %d parts: %w", m, wire.MaxParts, ErrTransfer)
	}
	for _, id := range t.codecs() {
		codec, known := coding.ByID(id)
		if !known {
			return fmt.Errorf("replica: transfer with codec %d: %w", id, ErrCodec)
		}
		if codec.Lattice != (coding.Lattice{}) {
			return fmt.Errorf("replica: transfer with %s: %w", codec.Name, ErrLattice)
		}
	}
	return nil
}

// codecs are those that the receiver takes.
func (t TransferTerms) codecs() []coding.ID {
	if t.Codecs == nil {
		return t.Plan.Codecs()
	}
	return t.Codecs
}

// passed tells whether the transfer hands a sum on that all are to have alike.
func (t TransferTerms) passed() bool { return t.Transfer.From == collective.Sum && !t.Transfer.Add }

// scale is what coded values of a weight are to be multiplied by. It is that of
// docs/WIRE.md: those of a sum are coded divided by a power of two, which costs no
// bit, so that they are about as large as a gradient.
func (t TransferTerms) scale(weight float64) float32 {
	switch t.Transfer.From {
	case collective.Gradient:
		return float32(weight)
	case collective.Sum:
		_, exponent := math.Frexp(weight)
		return float32(math.Ldexp(1, exponent-1))
	}
	return 1
}

// vector is the buffer of that name.
func (r *Replica) vector(b collective.Buffer) tensor.Vector {
	switch b {
	case collective.Gradient:
		return r.buffers.gradient
	case collective.Sum:
		return r.buffers.sum
	}
	return r.values
}

// passage is how far one side of a transfer has come.
type passage struct {
	replica   *Replica
	terms     TransferTerms
	next, end int           // pieces
	values    int           // in all of them
	first     int           // of all values, those of the part are from here on
	beyond    int           // to here
	scratch   tensor.Vector // for the longest slice
}

// Use has the next transfers be of a replica's buffers, as Initiator.Use does.
func (p *passage) Use(r *Replica) { p.replica = r }

// Begin starts a transfer. It fails as TransferTerms.Check does, or if the replica has
// no such buffer.
func (p *passage) Begin(terms TransferTerms) error {
	if err := terms.Check(); err != nil {
		return err
	}
	if p.replica.buffers == nil && terms.Transfer.Into != collective.Parameters {
		return errNoBuffers
	}
	terms.Codecs = terms.codecs()
	p.terms = terms
	p.next, p.end = p.replica.pieces.part(p.replica, terms.Transfer.Part, terms.Transfer.Parts)
	p.first, p.beyond = p.replica.Part(terms.Transfer.Part, terms.Transfer.Parts)
	p.values = p.replica.pieces.until(p.replica, p.end) - p.replica.pieces.until(p.replica, p.next)
	p.scratch = p.replica.scratch(p.scratch)
	return nil
}

// Values is the number of values that the transfer moves.
func (p *passage) Values() int { return p.values }

// Done tells whether all pieces have been sent, or taken in.
func (p *passage) Done() bool { return p.next == p.end }

// TransferOf is what an OFFER offers.
func TransferOf(m *wire.Offer) collective.Transfer {
	return collective.Transfer{
		From: collective.Buffer(m.From), Into: collective.Buffer(m.Into), Add: m.Add,
		Part: int(m.Part), Parts: int(m.Parts), Round: m.Round,
	}
}

// PutTransfer fills in what an OFFER offers.
func PutTransfer(m *wire.Offer, t collective.Transfer) {
	m.From, m.Into, m.Add = uint8(t.From), uint8(t.Into), t.Add
	m.Part, m.Parts, m.Round = uint32(t.Part), uint32(t.Parts), t.Round
}
