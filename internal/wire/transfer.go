package wire

import (
	"encoding/binary"
	"math"
)

// Limits of a transfer.
const (
	// MaxParts bounds the parts into which a buffer is divided.
	MaxParts = 1 << 20
	// MaxWeight bounds the weight of a run of values: the number of samples that one round of the largest flock could
	// have.
	MaxWeight = 1 << 40
	// MaxEager is about how many bytes of PARTs are sent before ACCEPT: enough to use the time of the round trip,
	// without much loss if the answer is REFUSE.
	MaxEager = 64 << 10
)

// Numbers of the buffers of a transfer.
const (
	BufferParameters uint8 = 0
	BufferGradient   uint8 = 1
	BufferSum        uint8 = 2
)

// Sizes of payloads, in bytes.
const (
	tellSize = 1 + 8 + 8 + 8
	maxOffer = 32 + 8 + 8 + 8 + 4 + 8 + 1 + 1 + 1 + 4 + 4 + 8 + 1 + MaxRunName + 1 + MaxCodecs
)

// Tell is a message from one machine to another. It has no answer.
type Tell struct {
	// The algorithm at both ends defines Kind and Value. Value is finite.
	Kind uint8
	// Round is the round of the message.
	Round uint64
	// View is the digest of the sender's view.
	View  uint64
	Value float64
}

func (Tell) Type() Type                     { return TypeTell }
func (m Tell) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Tell) Decode(payload []byte) error { return m.fields(reader(TypeTell, payload)).Finish() }

func (m *Tell) fields(c Coder) Coder {
	c.Uint8(&m.Kind)
	c.uint64s(&m.Round, &m.View)
	c.Float(&m.Value)
	return c
}

// Offer opens a transfer: the sender offers to copy a part of one of its buffers into, or add it to, a buffer of the
// receiver.
type Offer struct {
	Opening
	// From is the sender's buffer and Into the receiver's: Buffer numbers.
	From, Into uint8
	// Add tells whether the values are added to the receiver's, or replace them.
	Add bool
	// Part is the index of the offered part, from 0 below Parts; Parts is 1 to MaxParts.
	Part, Parts uint32
	// Round is the round of the algorithm that both ends run.
	Round uint64
}

func (Offer) Type() Type                     { return TypeOffer }
func (m Offer) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Offer) Decode(payload []byte) error { return m.fields(reader(TypeOffer, payload)).Finish() }

func (m *Offer) fields(c Coder) Coder {
	m.before(&c)
	c.buffer(&m.From)
	c.buffer(&m.Into)
	c.Bool(&m.Add)
	c.Uint32(&m.Part)
	if c.Uint32(&m.Parts); m.Parts == 0 || m.Parts > MaxParts || m.Part >= m.Parts {
		c.Fault("part %d of %d, which are not within 1 and %d", m.Part, m.Parts, MaxParts)
	}
	c.Uint64(&m.Round)
	m.after(&c)
	return c
}

// buffer codes the number of a buffer.
func (c *Coder) buffer(n *uint8) {
	if c.Uint8(n); *n > BufferSum {
		c.Fault("buffer %d", *n)
	}
}

// PartInfoSize is the size, in bytes, of the sub-header of PART payloads. It keeps the codec's bytes aligned in the
// payload.
const PartInfoSize = 16

// PartInfo is the sub-header of a PART payload.
type PartInfo struct {
	// Weight is the weight of the values of the run: 0, or 1 to MaxWeight. With a weight of 0 all values are 0, and
	// there are no codec's bytes.
	Weight float64
	// Codec codes the values; it is one of those accepted.
	Codec uint8
	// Pieces is the number of consecutive pieces in the run, from the piece in the header on: at least 1. With FormInputs it
	// is the number of rows that follow.
	Pieces uint32
	// Form is what the codec's bytes code: FormValues, or a part of a product.
	Form Form
	// Rank is the number of rows of both factors of a product, 0 with FormValues.
	Rank uint16
}

// Form is what a PART carries.
type Form uint8

const (
	// FormValues: the values of the run.
	FormValues Form = iota
	// FormInputs: rows of the first factor of a matrix's gradient. The piece in the header is the first that the product is for.
	FormInputs
	// FormErrors: of each row of the second factor, the columns that the rows of the matrix with values of the run have.
	FormErrors
)

// AppendPartInfo appends the sub-header of a PART payload; the caller appends the codec's bytes.
func AppendPartInfo(dst []byte, info PartInfo) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(info.Weight))
	dst = binary.LittleEndian.AppendUint32(dst, info.Pieces)
	dst = append(dst, info.Codec, uint8(info.Form))
	return binary.LittleEndian.AppendUint16(dst, info.Rank)
}

// SplitPart splits a PART payload into sub-header and codec's bytes, which alias the payload. It fails with
// ErrMessage.
func SplitPart(payload []byte) (PartInfo, []byte, error) {
	if len(payload) < PartInfoSize {
		return PartInfo{}, nil, malformed(TypePart, "%d bytes, at least %d", len(payload), PartInfoSize)
	}
	info := PartInfo{
		Weight: math.Float64frombits(binary.LittleEndian.Uint64(payload)),
		Pieces: binary.LittleEndian.Uint32(payload[8:]),
		Codec:  payload[12],
		Form:   Form(payload[13]),
		Rank:   binary.LittleEndian.Uint16(payload[14:]),
	}
	code := payload[PartInfoSize:]
	switch {
	case !(info.Weight >= 1 && info.Weight <= MaxWeight) && math.Float64bits(info.Weight) != 0: // true for NaN and −0
		return PartInfo{}, nil, malformed(TypePart, "weight %g, neither 0 nor within 1 and %d", info.Weight, uint64(MaxWeight))
	case info.Pieces == 0:
		return PartInfo{}, nil, malformed(TypePart, "no pieces")
	case info.Form > FormErrors || (info.Form == FormValues) != (info.Rank == 0):
		return PartInfo{}, nil, malformed(TypePart, "form %d with factors of %d rows", info.Form, info.Rank)
	case info.Weight == 0 && (len(code) > 0 || info.Form != FormValues):
		return PartInfo{}, nil, malformed(TypePart, "%d bytes of form %d for values of no weight", len(code), info.Form)
	}
	return info, code, nil
}
