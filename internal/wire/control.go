package wire

import (
	"bytes"
	"encoding/binary"
)

// Bounds of control messages, in bytes.
const (
	// MaxAuthor bounds the id of who signed.
	MaxAuthor = 128
	// MaxControlBody bounds what a control message says beyond its head.
	MaxControlBody = 2048
	// ControlSignature is the size of the Ed25519 signature at the end.
	ControlSignature = 64
	// MaxControl bounds a whole control message.
	MaxControl = 1 + 8 + 8 + 1 + MaxRunName + 1 + MaxAuthor + 2 + MaxControlBody + ControlSignature
)

// controlLabel begins what is signed, so that a signature of a control message is
// none of anything else that the same key signs.
const controlLabel = "murmuration control message 1\x00"

// ControlKind is what a control message is about.
type ControlKind uint8

// The kinds. Those below ControlDigest are an operator's, the others a peer's own.
const (
	ControlAnnounce ControlKind = 1
	ControlHold     ControlKind = 2
	ControlStop     ControlKind = 3
	ControlRate     ControlKind = 4
	ControlPace     ControlKind = 5
	ControlWork     ControlKind = 6

	ControlDigest ControlKind = 16
)

// ByPeer tells whether a kind is signed by a peer for itself, not by an operator.
func (k ControlKind) ByPeer() bool { return k >= ControlDigest }

// Planned tells whether a kind takes effect at a step of the flock.
func (k ControlKind) Planned() bool {
	return k == ControlRate || k == ControlPace || k == ControlWork
}

// Control is a signed message to all members of a run. It travels as it is on the
// run's topic, and in a CONTROL frame on a stream. Its body is decoded apart, once
// the signature is known to be good.
type Control struct {
	Kind ControlKind
	// Sequence grows with each message of one author; of two of one kind the one with
	// the higher sequence counts.
	Sequence uint64
	// At is the flock's step from which on a planned kind counts; 0 is at once.
	At uint64
	// Run is the name of the run, as CheckRun wants it.
	Run string
	// Author is the id of who signed: 1 to MaxAuthor bytes of text.
	Author string
	// Body is what the kind says, at most MaxControlBody bytes. Decode does not copy
	// it.
	Body []byte
	// Signature is the author's of what Signed returns.
	Signature [ControlSignature]byte
}

// Type is TypeControl.
func (Control) Type() Type { return TypeControl }

// Signed returns the bytes that the author signs.
func (m Control) Signed() []byte { return m.head([]byte(controlLabel)) }

// head appends everything but the signature. A body longer than its limit gives a
// payload that Decode refuses.
func (m Control) head(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, m.Sequence)
	dst = binary.LittleEndian.AppendUint64(dst, m.At)
	dst = appendText(dst, m.Run)
	dst = appendText(dst, m.Author)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(min(len(m.Body), 1<<16-1)))
	return append(dst, m.Body...)
}

// Append appends the encoded message to dst.
func (m Control) Append(dst []byte) []byte { return append(m.head(dst), m.Signature[:]...) }

// Decode reads a payload into m, whose Body then is a part of it. If it fails, with
// ErrMessage, m is meaningless. A kind that this release does not know is no fault.
func (m *Control) Decode(payload []byte) error {
	c := cursor{what: TypeControl, rest: payload}
	if m.Kind = ControlKind(c.uint8()); m.Kind == 0 {
		c.fault("no kind")
	}
	m.Sequence = c.uint64()
	if m.At = c.uint64(); m.At != 0 && !m.Kind.Planned() {
		c.fault("kind %d at a step", m.Kind)
	}
	m.Run = c.run()
	if m.Author = c.text(MaxAuthor); m.Author == "" {
		c.fault("no author")
	}
	n := int(c.uint16())
	if n > MaxControlBody {
		c.fault("body of %d bytes, at most %d", n, MaxControlBody)
	}
	m.Body = c.take(n)
	copy(m.Signature[:], c.take(ControlSignature))
	return c.finish()
}

// Same tells whether two messages are one, signature and all.
func (m Control) Same(other Control) bool { return bytes.Equal(m.Append(nil), other.Append(nil)) }

// text reads a text that may be shown to a user.
func (c *cursor) text(most int) string {
	text := string(c.list(most))
	if !clean(text) {
		c.fault("text is not printable UTF-8")
	}
	return text
}
