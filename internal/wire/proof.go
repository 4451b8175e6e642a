package wire

// Sizes of a proof's parts, in bytes.
const (
	// NonceSize is the size of a nonce, a number that is used once.
	NonceSize = 32
	// MACSize is the size of an HMAC-SHA256.
	MACSize = 32

	challengeSize = NonceSize
	proofSize     = NonceSize + MACSize
)

// Challenge answers a HELLO if the run has a key: it asks for a proof that the sender knows the key.
type Challenge struct {
	// Nonce is the sender's, drawn at random for this conversation.
	Nonce [NonceSize]byte
}

func (Challenge) Type() Type                 { return TypeChallenge }
func (m Challenge) Append(dst []byte) []byte { return m.fields(writer(dst)).out }
func (m *Challenge) Decode(payload []byte) error {
	return m.fields(reader(TypeChallenge, payload)).Finish()
}

func (m *Challenge) fields(c Coder) Coder {
	c.Fixed(m.Nonce[:])
	return c
}

// Proof shows that its sender knows the run's key. The peer that sent HELLO sends its proof first; if that is right,
// the other peer sends its own.
type Proof struct {
	// Nonce is the sender's, drawn at random for this conversation. The peer that sent CHALLENGE repeats the nonce of
	// that message.
	Nonce [NonceSize]byte
	// MAC can be computed only with the key, and is valid only in this conversation.
	MAC [MACSize]byte
}

func (Proof) Type() Type                     { return TypeProof }
func (m Proof) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Proof) Decode(payload []byte) error { return m.fields(reader(TypeProof, payload)).Finish() }

func (m *Proof) fields(c Coder) Coder {
	c.Fixed(m.Nonce[:])
	c.Fixed(m.MAC[:])
	return c
}
