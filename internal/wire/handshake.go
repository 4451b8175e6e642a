package wire

import "encoding/binary"

// Limits of the messages that open a conversation.
const (
	// MaxDetail is the most bytes in the detail of a refusal.
	MaxDetail = 200
	// MaxCodecs is the most codecs a peer may offer.
	MaxCodecs = 16
	// MaxLanes is the most streams that one exchange may use at once.
	MaxLanes = 8
)

// Sizes of payloads, in bytes; texts and lists have a byte of length each.
const (
	maxHello    = 32 + 8 + 8 + 1 + MaxRunName
	welcomeSize = 4 * 8
	maxRefuse   = 1 + 1 + MaxDetail
	maxPropose  = 32 + 8 + 8 + 8 + 4 + 8 + 1 + 1 + 1 + MaxRunName + 1 + MaxCodecs
	maxAccept   = 8 + 8 + 2 + 1 + 1 + 1 + MaxCodecs
	laneSize    = 1
)

// Hello is the first thing a peer says to another that it joins.
type Hello struct {
	// Run is the name of the run, as CheckRun wants it.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
	// Incarnation counts the lives of the sender.
	Incarnation uint64
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
}

// Type is TypeHello.
func (Hello) Type() Type { return TypeHello }

// Append appends the encoded message to dst.
func (m Hello) Append(dst []byte) []byte {
	dst = append(dst, m.Layout[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = binary.LittleEndian.AppendUint64(dst, m.Steps)
	return appendText(dst, m.Run)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Hello) Decode(payload []byte) error {
	c := cursor{what: TypeHello, rest: payload}
	m.Layout = c.hash()
	m.Incarnation = c.uint64()
	m.Steps = c.uint64()
	m.Run = c.run()
	return c.finish()
}

// Welcome answers a Hello.
type Welcome struct {
	// Incarnation counts the lives of the sender.
	Incarnation uint64
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// FlockSteps is the sender's estimate of all members' steps together.
	FlockSteps uint64
	// KnownIncarnation was the newest incarnation of the receiver that the sender
	// knew of. Nobody signs it, so it is sent as zero and not looked at: a peer that
	// restarts believes its own records only, which the membership hands to it.
	KnownIncarnation uint64
}

// Type is TypeWelcome.
func (Welcome) Type() Type { return TypeWelcome }

// Append appends the encoded message to dst.
func (m Welcome) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = binary.LittleEndian.AppendUint64(dst, m.Steps)
	dst = binary.LittleEndian.AppendUint64(dst, m.FlockSteps)
	return binary.LittleEndian.AppendUint64(dst, m.KnownIncarnation)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Welcome) Decode(payload []byte) error {
	c := cursor{what: TypeWelcome, rest: payload}
	m.Incarnation = c.uint64()
	m.Steps = c.uint64()
	m.FlockSteps = c.uint64()
	m.KnownIncarnation = c.uint64()
	return c.finish()
}

// Refuse ends a conversation and says why. It is the one frame that means the
// same in every wire version.
type Refuse struct {
	// Reason is not zero, and may be one that this release does not know.
	Reason Reason
	// Detail is what the reason cannot say, such as the layout expected; for the
	// log, never to be parsed. Append drops what is beyond MaxDetail bytes and
	// replaces what a log should not be given by a question mark.
	Detail string
}

// Type is TypeRefuse.
func (Refuse) Type() Type { return TypeRefuse }

// Append appends the encoded message to dst.
func (m Refuse) Append(dst []byte) []byte {
	dst = append(dst, uint8(m.Reason), 0)
	length := len(dst) - 1
	for _, r := range m.Detail {
		if !cleanRune(r) {
			r = '?'
		}
		longer := append(dst, string(r)...)
		if len(longer)-length-1 > MaxDetail {
			break
		}
		dst = longer
	}
	dst[length] = uint8(len(dst) - length - 1)
	return dst
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Refuse) Decode(payload []byte) error {
	c := cursor{what: TypeRefuse, rest: payload}
	if m.Reason = Reason(c.uint8()); m.Reason == 0 {
		c.fault("no reason")
	}
	if m.Detail = string(c.list(MaxDetail)); !clean(m.Detail) {
		c.fault("detail %q is not printable UTF-8", m.Detail)
	}
	return c.finish()
}

// Propose opens an exchange: an active peer asks a passive one.
type Propose struct {
	// Run is the name of the run, as CheckRun wants it.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
	// View is a digest of the membership that the sender sees.
	View uint64
	// Incarnation counts the lives of the sender.
	Incarnation uint64
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// SliceLen is the number of values in a slice, the last ones of a range aside:
	// 1 to MaxSliceLen.
	SliceLen uint32
	// Cut is a digest of how the sender cuts its model into slices: two peers that
	// cut otherwise would take one part of the model for another.
	Cut uint64
	// Overlap counts the exchanges that the sender takes part in, this one
	// included: at least 1.
	Overlap uint8
	// Lanes is the number of streams that the sender would use: 1 to MaxLanes.
	Lanes uint8
	// Codecs are the codecs that the sender may use, 1 to MaxCodecs of them, the one
	// it prefers first. A receiver ignores those it does not know.
	Codecs []uint8
}

// Type is TypePropose.
func (Propose) Type() Type { return TypePropose }

// Append appends the encoded message to dst.
func (m Propose) Append(dst []byte) []byte {
	dst = append(dst, m.Layout[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, m.View)
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = binary.LittleEndian.AppendUint64(dst, m.Steps)
	dst = binary.LittleEndian.AppendUint32(dst, m.SliceLen)
	dst = binary.LittleEndian.AppendUint64(dst, m.Cut)
	dst = append(dst, m.Overlap, m.Lanes)
	dst = appendText(dst, m.Run)
	return appendCodecs(dst, m.Codecs)
}

func appendCodecs(dst, codecs []uint8) []byte {
	dst = append(dst, uint8(min(len(codecs), 255)))
	return append(dst, codecs...)
}

// Decode reads a payload into m; Codecs is a copy, in the memory of the one
// before. If it fails, with ErrMessage,
// m is meaningless.
func (m *Propose) Decode(payload []byte) error {
	c := cursor{what: TypePropose, rest: payload}
	m.Layout = c.hash()
	m.View = c.uint64()
	m.Incarnation = c.uint64()
	m.Steps = c.uint64()
	m.SliceLen, m.Cut = c.sliceLen(), c.uint64()
	m.Overlap, m.Lanes = c.overlap(), c.lanes()
	m.Run = c.run()
	m.Codecs = c.codecs(m.Codecs)
	return c.finish()
}

// codecs reads a list of codecs, which is not empty, into the memory of another.
func (c *cursor) codecs(into []uint8) []uint8 {
	list := append(into[:0], c.list(MaxCodecs)...)
	if len(list) == 0 {
		c.fault("no codec is named")
	}
	return list
}

// sliceLen reads a number of values per slice.
func (c *cursor) sliceLen() uint32 {
	n := c.uint32()
	if n == 0 || n > MaxSliceLen {
		c.fault("%d values per slice, not within 1 and %d", n, MaxSliceLen)
	}
	return n
}

// overlap reads a number of exchanges that run at once.
func (c *cursor) overlap() uint8 {
	n := c.uint8()
	if n == 0 {
		c.fault("not even this exchange is counted")
	}
	return n
}

// lanes reads a number of streams of one exchange.
func (c *cursor) lanes() uint8 {
	n := c.uint8()
	if n == 0 || n > MaxLanes {
		c.fault("%d lanes, not within 1 and %d", n, MaxLanes)
	}
	return n
}

// Accept answers a Propose; the exchange begins. It answers an Offer too, with one
// lane, a window of 1 and an overlap of 1, which mean nothing there.
type Accept struct {
	// Codecs are those of the codecs offered that may be used, at least one: each
	// CODE names its own.
	Codecs []uint8
	// Window is the number of CODE frames of one lane that may be under way without
	// their DIFF applied and acknowledged: at least 1, and at most MaxInDoubt over
	// all Lanes.
	Window uint16
	// Overlap counts the exchanges that the busier of the two takes part in, this
	// one included: the weight of the exchange is 1/(1+Overlap). It is at least
	// what was proposed.
	Overlap uint8
	// Lanes is the number of streams that may be used, at most what was proposed.
	Lanes uint8
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// Incarnation counts the lives of the sender.
	Incarnation uint64
}

// Type is TypeAccept.
func (Accept) Type() Type { return TypeAccept }

// Append appends the encoded message to dst.
func (m Accept) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.Steps)
	dst = binary.LittleEndian.AppendUint64(dst, m.Incarnation)
	dst = binary.LittleEndian.AppendUint16(dst, m.Window)
	dst = append(dst, m.Overlap, m.Lanes)
	return appendCodecs(dst, m.Codecs)
}

// Decode reads a payload into m; Codecs is a copy, in the memory of the one
// before. If it fails, with ErrMessage, m is
// meaningless.
func (m *Accept) Decode(payload []byte) error {
	c := cursor{what: TypeAccept, rest: payload}
	m.Steps = c.uint64()
	m.Incarnation = c.uint64()
	m.Window = c.uint16()
	m.Overlap, m.Lanes = c.overlap(), c.lanes()
	m.Codecs = c.codecs(m.Codecs)
	if n := int(m.Window) * int(m.Lanes); n == 0 || n > MaxInDoubt {
		c.fault("%d lanes with a window of %d frames, not within 1 and %d together", m.Lanes, m.Window, MaxInDoubt)
	}
	return c.finish()
}

// Lane opens a further stream of an exchange under way: the header names the
// exchange, whose CODE frames follow as on its first stream.
type Lane struct {
	// Lane numbers the further streams from 1, below the number accepted.
	Lane uint8
}

// Type is TypeLane.
func (Lane) Type() Type { return TypeLane }

// Append appends the encoded message to dst.
func (m Lane) Append(dst []byte) []byte { return append(dst, m.Lane) }

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Lane) Decode(payload []byte) error {
	c := cursor{what: TypeLane, rest: payload}
	if m.Lane = c.uint8(); m.Lane == 0 || m.Lane >= MaxLanes {
		c.fault("lane %d, not within 1 and %d", m.Lane, MaxLanes-1)
	}
	return c.finish()
}
