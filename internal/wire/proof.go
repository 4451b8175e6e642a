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

// Append appends the encoded message to dst.
func (m Challenge) Append(dst []byte) []byte { return append(dst, m.Nonce[:]...) }

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Challenge) Decode(payload []byte) error {
	c := cursor{what: TypeChallenge, rest: payload}
	m.Nonce = c.hash()
	return c.finish()
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

// Append appends the encoded message to dst.
func (m Proof) Append(dst []byte) []byte {
	dst = append(dst, m.Nonce[:]...)
	return append(dst, m.MAC[:]...)
}

// Decode reads a payload into m. If it fails, with ErrMessage, m is meaningless.
func (m *Proof) Decode(payload []byte) error {
	c := cursor{what: TypeProof, rest: payload}
	m.Nonce, m.MAC = c.hash(), c.hash()
	return c.finish()
}
