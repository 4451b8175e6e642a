package wire

// Bounds of a description, in bytes.
const (
	// MaxDescription is the most of its text.
	MaxDescription = 4 << 10
	// MaxDescriptionFrame is the most of its frame's payload.
	MaxDescriptionFrame = 1 + MaxPeerName + 1 + MaxSignature + 2 + MaxDescription
)

// Description goes before the answer to a HELLO that has FlagDescribe: what the run is, in
// signed by the peer that began it.
type Description struct {
	// Text is what package description makes of it.
	Text []byte
	// Signer is the id of who signed: 1 to MaxPeerName bytes of text.
	Signer    string
	Signature []byte
}

// Type is TypeDescription.
func (Description) Type() Type { return TypeDescription }

// Append implements Message.
func (m Description) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Description) Decode(payload []byte) error {
	return m.fields(reader(TypeDescription, payload)).Finish()
}

func (m *Description) fields(c Coder) Coder {
	c.Text(&m.Signer, 1, MaxPeerName)
	c.copied(&m.Signature, 1, 1, MaxSignature, "bytes of signature")
	c.copied(&m.Text, 2, 1, MaxDescription, "bytes of description")
	return c
}
