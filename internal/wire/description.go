package wire

// Bounds of a description, in bytes.
const (
	// MaxDescription bounds its text.
	MaxDescription = 4 << 10
	// MaxDescriptionFrame bounds the payload of its frame.
	MaxDescriptionFrame = 1 + MaxPeerName + 1 + MaxSignature + 2 + MaxDescription
)

// Description comes before the answer to a HELLO that has FlagDescribe. It describes the run, and the peer that began
// the run has signed it.
type Description struct {
	// Text is a description as package description encodes it.
	Text []byte
	// Signer is the id of the signer: 1 to MaxPeerName bytes of text.
	Signer    string
	Signature []byte
}

func (Description) Type() Type                 { return TypeDescription }
func (m Description) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *Description) Decode(payload []byte) error {
	return m.fields(reader(TypeDescription, payload)).Finish()
}

func (m *Description) fields(c Coder) Coder {
	c.Text(&m.Signer, 1, MaxPeerName)
	c.copied(&m.Signature, 1, 1, MaxSignature, "bytes of signature")
	c.copied(&m.Text, 2, 1, MaxDescription, "bytes of description")
	return c
}
