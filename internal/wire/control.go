package wire

// Bounds of control messages, in bytes.
const (
	// MaxAuthor bounds the id of the signer.
	MaxAuthor = 128
	// MaxControlBody bounds the body of a control message.
	MaxControlBody = 2048
	// ControlSignature is the size of the Ed25519 signature at the end.
	ControlSignature = 64
	// MaxControl bounds a whole control message.
	MaxControl = 1 + 8 + 8 + 1 + MaxRunName + 1 + MaxAuthor + 2 + MaxControlBody + ControlSignature
)

// controlLabel is the start of the signed bytes, so that the signature of a control message is never valid for
// anything else that the same key signs.
const controlLabel = "murmuration control message 1\x00"

// ControlKind is what a control message is about.
type ControlKind uint8

// The kinds. An operator signs those below ControlDigest, a peer the others, for itself.
const (
	ControlAnnounce ControlKind = 1
	ControlHold     ControlKind = 2
	ControlStop     ControlKind = 3
	ControlRate     ControlKind = 4
	ControlPace     ControlKind = 5
	ControlWork     ControlKind = 6
	ControlMembers  ControlKind = 7
	ControlDuties   ControlKind = 8

	ControlDigest       ControlKind = 16
	ControlIntroduction ControlKind = 17
	ControlEvaluation   ControlKind = 18
)

// ByPeer tells whether a kind is signed by a peer for itself, not by an operator.
func (k ControlKind) ByPeer() bool { return k >= ControlDigest }

// Planned tells whether a kind takes effect at a step of the flock.
func (k ControlKind) Planned() bool {
	return k == ControlRate || k == ControlPace || k == ControlWork
}

// Control is a signed message to all members of a run. It travels unchanged on the run's topic, and in a CONTROL
// frame on a stream. Its body is decoded separately, after the signature has been verified.
type Control struct {
	Kind ControlKind
	// Sequence grows with each message of one author. Of two messages of one kind, the one with the higher sequence
	// counts.
	Sequence uint64
	// At is the flock's step at which a planned kind takes effect; 0 is at once.
	At uint64
	// Run is the name of the run, which CheckRun accepts.
	Run string
	// Author is the id of the signer: 1 to MaxAuthor bytes of text.
	Author string
	// Body is the content, whose form depends on the kind: at most MaxControlBody bytes. Decode does not copy it.
	Body []byte
	// Signature is the author's signature of the bytes that Signed returns.
	Signature [ControlSignature]byte
}

// Signed returns the bytes that the author signs.
func (m Control) Signed() []byte {
	return m.signed(writer([]byte(controlLabel))).out
}

func (Control) Type() Type                 { return TypeControl }
func (m Control) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m, whose Body is then a part of the payload. A kind that this release does not know is
// accepted.
func (m *Control) Decode(payload []byte) error {
	return m.fields(reader(TypeControl, payload)).Finish()
}

func (m *Control) fields(c Coder) Coder {
	c = m.signed(c)
	c.Fixed(m.Signature[:])
	return c
}

// signed are the fields that the author signs.
func (m *Control) signed(c Coder) Coder {
	if c.Uint8((*uint8)(&m.Kind)); m.Kind == 0 {
		c.Fault("no kind")
	}
	c.Uint64(&m.Sequence)
	if c.Uint64(&m.At); m.At != 0 && !m.Kind.Planned() {
		c.Fault("kind %d at a step", m.Kind)
	}
	c.run(&m.Run)
	c.Text(&m.Author, 1, MaxAuthor)
	c.Bytes(&m.Body, 2, 0, MaxControlBody, "bytes of body")
	return c
}
