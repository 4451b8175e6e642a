package wire

// Sizes of a proof's parts, in bytes.
const (
	// NonceSize is the size of a number that is used once.
	NonceSize = 32
	// MACSize is the size of an HMAC-SHA256.
	MACSize = 32

	challengeSize = NonceSize
	proofSize     = NonceSize + MACSize
)

// Challenge answers a HELLO where the run has a key: prove that you know it.
type Challenge struct {
	// Nonce is the sender's, drawn for this conversation.
	Nonce [NonceSize]byte
}

// Type is TypeChallenge.
func (Challenge) Type() Type { return TypeChallenge }

// Append implements Message.
func (m Challenge) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Challenge) Decode(payload []byte) error {
	return m.fields(reader(TypeChallenge, payload)).Finish()
}

func (m *Challenge) fields(c Coder) Coder {
	c.Fixed(m.Nonce[:])
	return c
}

// Proof shows that its sender knows the run's key: first of the peer that says
// hello, then, if that one is right, of the other.
type Proof struct {
	// Nonce is the sender's, drawn for this conversation: from the peer that sent
	// CHALLENGE the same again.
	Nonce [NonceSize]byte
	// MAC is what only one that knows the key can make of this conversation.
	MAC [MACSize]byte
}

// Type is TypeProof.
func (Proof) Type() Type { return TypeProof }

// Append implements Message.
func (m Proof) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m.
func (m *Proof) Decode(payload []byte) error { return m.fields(reader(TypeProof, payload)).Finish() }

func (m *Proof) fields(c Coder) Coder {
	c.Fixed(m.Nonce[:])
	c.Fixed(m.MAC[:])
	return c
}
