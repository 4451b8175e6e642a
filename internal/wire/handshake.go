package wire

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

// Append implements Message.
func (m Hello) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Hello) Decode(payload []byte) error { return m.fields(reader(TypeHello, payload)).Finish() }

func (m *Hello) fields(c Coder) Coder {
	c.Fixed(m.Layout[:])
	c.uint64s(&m.Incarnation, &m.Steps)
	c.run(&m.Run)
	return c
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

// Append implements Message.
func (m Welcome) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Welcome) Decode(payload []byte) error {
	return m.fields(reader(TypeWelcome, payload)).Finish()
}

func (m *Welcome) fields(c Coder) Coder {
	c.uint64s(&m.Incarnation, &m.Steps, &m.FlockSteps, &m.KnownIncarnation)
	return c
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

// Decode reads a payload into m.
func (m *Refuse) Decode(payload []byte) error {
	c := reader(TypeRefuse, payload)
	if c.Uint8((*uint8)(&m.Reason)); m.Reason == 0 {
		c.Fault("no reason")
	}
	c.Text(&m.Detail, 0, MaxDetail)
	return c.Finish()
}

// Opening is what who opens an exchange or a transfer says of itself.
type Opening struct {
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
	// Codecs are the codecs that the sender may use, 1 to MaxCodecs of them, the one
	// it prefers first. A receiver ignores those it does not know.
	Codecs []uint8
}

// before and after are its fields before and after those of its kind.
func (m *Opening) before(c *Coder) {
	c.Fixed(m.Layout[:])
	c.uint64s(&m.View, &m.Incarnation, &m.Steps)
	c.sliceLen(&m.SliceLen)
	c.Uint64(&m.Cut)
}

func (m *Opening) after(c *Coder) {
	c.run(&m.Run)
	c.codecs(&m.Codecs)
}

// Propose opens an exchange: an active peer asks a passive one.
type Propose struct {
	Opening
	// Overlap counts the exchanges that the sender takes part in, this one
	// included: at least 1.
	Overlap uint8
	// Lanes is the number of streams that the sender would use: 1 to MaxLanes.
	Lanes uint8
}

// Type is TypePropose.
func (Propose) Type() Type { return TypePropose }

// Append implements Message.
func (m Propose) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Propose) Decode(payload []byte) error {
	return m.fields(reader(TypePropose, payload)).Finish()
}

func (m *Propose) fields(c Coder) Coder {
	m.before(&c)
	c.overlap(&m.Overlap)
	c.lanes(&m.Lanes)
	m.after(&c)
	return c
}

// codecs codes a list of codecs.
func (c *Coder) codecs(list *[]uint8) { c.copied(list, 1, 1, MaxCodecs, "codecs") }

// sliceLen codes a number of values per slice.
func (c *Coder) sliceLen(n *uint32) {
	if c.Uint32(n); *n == 0 || *n > MaxSliceLen {
		c.Fault("%d values per slice, not within 1 and %d", *n, MaxSliceLen)
	}
}

// overlap codes a number of exchanges that run at once.
func (c *Coder) overlap(n *uint8) {
	if c.Uint8(n); *n == 0 {
		c.Fault("not even this exchange is counted")
	}
}

// lanes codes a number of streams of one exchange.
func (c *Coder) lanes(n *uint8) {
	if c.Uint8(n); *n == 0 || *n > MaxLanes {
		c.Fault("%d lanes, not within 1 and %d", *n, MaxLanes)
	}
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

// Append implements Message.
func (m Accept) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Accept) Decode(payload []byte) error { return m.fields(reader(TypeAccept, payload)).Finish() }

func (m *Accept) fields(c Coder) Coder {
	c.uint64s(&m.Steps, &m.Incarnation)
	c.uint16(&m.Window)
	c.overlap(&m.Overlap)
	c.lanes(&m.Lanes)
	c.codecs(&m.Codecs)
	if n := int(m.Window) * int(m.Lanes); n == 0 || n > MaxInDoubt {
		c.Fault("%d lanes with a window of %d frames, not within 1 and %d together", m.Lanes, m.Window, MaxInDoubt)
	}
	return c
}

// Lane opens a further stream of an exchange under way: the header names the
// exchange, whose CODE frames follow as on its first stream.
type Lane struct {
	// Lane numbers the further streams from 1, below the number accepted.
	Lane uint8
}

// Type is TypeLane.
func (Lane) Type() Type { return TypeLane }

// Append implements Message.
func (m Lane) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Lane) Decode(payload []byte) error { return m.fields(reader(TypeLane, payload)).Finish() }

func (m *Lane) fields(c Coder) Coder {
	if c.Uint8(&m.Lane); m.Lane == 0 || m.Lane >= MaxLanes {
		c.Fault("lane %d, not within 1 and %d", m.Lane, MaxLanes-1)
	}
	return c
}
