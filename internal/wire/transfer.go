package wire

import (
	"encoding/binary"
	"math"
)

// Limits of a transfer.
const (
	// MaxParts is the most parts into which a buffer may be divided.
	MaxParts = 1 << 20
	// MaxWeight is the most that a run of values may weigh: samples, as many as a
	// round of the largest flock could have.
	MaxWeight = 1 << 40
	// MaxEager is about how many bytes of PARTs are sent before ACCEPT: enough to make
	// good use of the round trip, and not too much to lose if the answer is REFUSE.
	MaxEager = 64 << 10
)

// Numbers of the buffers that a transfer names.
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

// Tell carries a message from one machine to another. It has no answer.
type Tell struct {
	// Kind and Value mean what the algorithm says that both ends run. Value is finite.
	Kind uint8
	// Round is the round of the message.
	Round uint64
	// View is the digest of the view that the sender has.
	View  uint64
	Value float64
}

// Type is TypeTell.
func (Tell) Type() Type { return TypeTell }

// Append implements Message.
func (m Tell) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Tell) Decode(payload []byte) error { return m.fields(reader(TypeTell, payload)).Finish() }

func (m *Tell) fields(c Coder) Coder {
	c.Uint8(&m.Kind)
	c.uint64s(&m.Round, &m.View)
	c.Float(&m.Value)
	return c
}

// Offer opens a transfer: its sender wants to move a part of one of its buffers into
// one of the receiver's, one way.
type Offer struct {
	Opening
	// From is the sender's buffer and Into the receiver's, one of the Buffer numbers.
	From, Into uint8
	// Add tells whether what comes is added to what the receiver has, or replaces it.
	Add bool
	// Part is the one of Parts that is meant, from 0; Parts is 1 to MaxParts.
	Part, Parts uint32
	// Round is the round of the algorithm that both ends run.
	Round uint64
}

// Type is TypeOffer.
func (Offer) Type() Type { return TypeOffer }

// Append implements Message.
func (m Offer) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
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

// PartInfoSize is the size of the sub-header with which the payload of PART begins, in
// bytes. It keeps the codec's bytes aligned in the payload.
const PartInfoSize = 16

// PartInfo is the sub-header of a PART payload.
type PartInfo struct {
	// Weight is what the values of the run weigh: 0, or 1 to MaxWeight. With a weight
	// of 0 there are no codec's bytes: all values are 0.
	Weight float64
	// Codec is what the values are coded with, one of those accepted.
	Codec uint8
	// Pieces is the number of consecutive pieces that the run has, from the one in the
	// header on: at least 1.
	Pieces uint32
}

// AppendPartInfo appends the sub-header of a PART payload; the codec's bytes are to
// follow.
func AppendPartInfo(dst []byte, info PartInfo) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(info.Weight))
	dst = binary.LittleEndian.AppendUint32(dst, info.Pieces)
	return append(dst, info.Codec, 0, 0, 0)
}

// SplitPart splits a PART payload in sub-header and codec's bytes, which alias the
// payload. It fails with ErrMessage.
func SplitPart(payload []byte) (PartInfo, []byte, error) {
	if len(payload) < PartInfoSize {
		return PartInfo{}, nil, malformed(TypePart, "%d bytes, at least %d", len(payload), PartInfoSize)
	}
	info := PartInfo{
		Weight: math.Float64frombits(binary.LittleEndian.Uint64(payload)),
		Pieces: binary.LittleEndian.Uint32(payload[8:]),
		Codec:  payload[12],
	}
	code := payload[PartInfoSize:]
	reserved := binary.LittleEndian.Uint32(payload[12:]) >> 8
	switch {
	case !(info.Weight >= 1 && info.Weight <= MaxWeight) && math.Float64bits(info.Weight) != 0: // true for NaN and −0
		return PartInfo{}, nil, malformed(TypePart, "weight %g, neither 0 nor within 1 and %d", info.Weight, uint64(MaxWeight))
	case info.Pieces == 0:
		return PartInfo{}, nil, malformed(TypePart, "no pieces")
	case reserved != 0:
		return PartInfo{}, nil, malformed(TypePart, "reserved bytes hold %#06x", reserved)
	case info.Weight == 0 && len(code) > 0:
		return PartInfo{}, nil, malformed(TypePart, "%d bytes of code for values of no weight", len(code))
	}
	return info, code, nil
}
