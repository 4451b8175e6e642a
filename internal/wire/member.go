package wire

// Bounds of what is told of a member, in bytes.
const (
	// MaxPartners bounds the partners that a digest tells of, MaxDigest is its size with all.
	MaxPartners = 16
	MaxDigest   = 5*8 + 2 + 3*8 + 1 + MaxPartners*12
	maxRole     = 16
	// MaxMember leaves room for what later releases add.
	MaxMember = 1024
)

// The bits of Member.Flags.
const (
	MemberUnreachable = 1 << iota
	MemberLeaving
)

// Member is a member as another one tells of it to somebody who asks from outside.
type Member struct {
	// ID is 1 to MaxAuthor bytes of text; Role is a word.
	ID, Role string
	// State is as package peer numbers it.
	State, Flags uint8
	Steps        uint64
	// Name and Version are as the member's introduction says; empty if none has come.
	Name, Version string
	// Heard and Exchanged are the milliseconds since its digest was heard, and since its
	// last exchange, as far as the one who tells knows; Never if it does not.
	Heard, Exchanged uint64
	// Digest is the body of its last digest, at most MaxDigest bytes; empty if none has come.
	Digest []byte
	// More is what a later release says besides.
	More []byte
}

// Never stands for a time that is not known.
const Never = 1<<64 - 1

// Type is TypeMember.
func (Member) Type() Type { return TypeMember }

// Append implements Message.
func (m Member) Append(dst []byte) []byte { return m.fields(writer(dst)).out }

// Decode reads a payload into m, whose Digest and More then are parts of it.
func (m *Member) Decode(payload []byte) error { return m.fields(reader(TypeMember, payload)).Finish() }

func (m *Member) fields(c Coder) Coder {
	c.Text(&m.ID, 1, MaxAuthor)
	c.Text(&m.Role, 0, maxRole)
	c.Uint8(&m.State)
	c.Uint8(&m.Flags)
	c.Uint64(&m.Steps)
	c.Text(&m.Name, 0, MaxName)
	c.Text(&m.Version, 0, MaxVersion)
	c.uint64s(&m.Heard, &m.Exchanged)
	c.bytes(&m.Digest, 2, 0, MaxDigest, "bytes of digest")
	c.remaining(&m.More)
	return c
}
