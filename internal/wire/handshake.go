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

// Hello is the first message of a peer to another peer that it joins.
type Hello struct {
	// Run is the name of the run, which CheckRun accepts.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
	// Incarnation counts the lives of the sender.
	Incarnation uint64
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
}

func (Hello) Type() Type                     { return TypeHello }
func (m Hello) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
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
	// KnownIncarnation was the newest incarnation of the receiver that the sender knew. It is not signed, so it is
	// sent as zero and ignored: a restarted peer trusts only its own records, which the membership passes to it.
	KnownIncarnation uint64
}

func (Welcome) Type() Type                 { return TypeWelcome }
func (m Welcome) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *Welcome) Decode(payload []byte) error {
	return m.fields(reader(TypeWelcome, payload)).Finish()
}

func (m *Welcome) fields(c Coder) Coder {
	c.uint64s(&m.Incarnation, &m.Steps, &m.FlockSteps, &m.KnownIncarnation)
	return c
}

// Refuse ends a conversation and gives the reason. It is the only frame that means the same in every wire version.
type Refuse struct {
	// Reason is not zero, and may be one that this release does not know.
	Reason Reason
	// Detail adds to the reason, for example the expected layout. It is for the log, never to be parsed. Append drops
	// bytes beyond MaxDetail, and replaces characters that do not belong in a log by a question mark.
	Detail string
}

// Type is TypeRefuse.
func (Refuse) Type() Type { return TypeRefuse }

// Append appends the encoded message to dst.
func (m Refuse) Append(dst []byte) []byte {
	dst = append(dst, uint8(m.Reason), 0)
	length := len(dst) - 1
	for _, r := range m.Detail {
		if !printableRune(r) {
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

// Opening has the fields that PROPOSE and OFFER share. The sender describes itself in them.
type Opening struct {
	// Run is the name of the run, which CheckRun accepts.
	Run string
	// Layout is the hash of the model's layout.
	Layout [32]byte
	// View is a digest of the membership that the sender sees.
	View uint64
	// Incarnation counts the lives of the sender.
	Incarnation uint64
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// SliceLen is the number of values in a slice, except the last slice of a range: 1 to MaxSliceLen.
	SliceLen uint32
	// Cut is a digest of the division of the sender's model into slices: with different divisions, two peers would
	// mistake one part of the model for another.
	Cut uint64
	// Codecs are the codecs that the sender may use, 1 to MaxCodecs of them, in the order of its preference. A
	// receiver ignores those it does not know.
	Codecs []uint8
}

// before and after code the shared fields before and after those of the message's own.
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
	// Lanes is the number of streams that the sender asks for: 1 to MaxLanes.
	Lanes uint8
}

func (Propose) Type() Type                 { return TypePropose }
func (m Propose) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
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

// Accept answers a Propose, and the exchange begins. It also answers an Offer; then lanes, window and overlap are 1
// and mean nothing.
type Accept struct {
	// Codecs are those of the offered codecs that may be used, at least one: each CODE names its own.
	Codecs []uint8
	// Window is the number of CODE frames of one lane that may be sent before their DIFF is applied and acknowledged:
	// at least 1, and at most MaxInDoubt over all Lanes.
	Window uint16
	// Overlap is the larger number of exchanges that one of the two peers takes part in, this one included: the
	// weight of the exchange is 1/(1+Overlap). It is at least the proposed overlap.
	Overlap uint8
	// Lanes is the number of streams that may be used, at most as many as proposed.
	Lanes uint8
	// Steps is the number of gradient steps that the sender has taken.
	Steps uint64
	// Incarnation counts the lives of the sender.
	Incarnation uint64
}

func (Accept) Type() Type                     { return TypeAccept }
func (m Accept) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
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

// Lane opens another stream of a running exchange. The header has the number of the exchange, and CODE frames follow
// as on the first stream.
type Lane struct {
	// Lane numbers these streams from 1, below the number of lanes accepted.
	Lane uint8
}

func (Lane) Type() Type                     { return TypeLane }
func (m Lane) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Lane) Decode(payload []byte) error { return m.fields(reader(TypeLane, payload)).Finish() }

func (m *Lane) fields(c Coder) Coder {
	if c.Uint8(&m.Lane); m.Lane == 0 || m.Lane >= MaxLanes {
		c.Fault("lane %d, not within 1 and %d", m.Lane, MaxLanes-1)
	}
	return c
}
