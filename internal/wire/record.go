package wire

// MaxSigned bounds a member record with its signature: the size that memberlist carries.
const MaxSigned = 512

const maxRecord = 8 + 2 + MaxSigned

// Record is a member's own record, sent before gossip can bring it. A peer that refuses a proposal due to its role
// sends it before the REFUSE, so that the other can correct its view at once.
type Record struct {
	// View is a digest of the membership that the sender sees.
	View uint64
	// Signed is the sender's member record with its signature, as gossip carries it: 1 to MaxSigned bytes, which only
	// the membership reads.
	Signed []byte
}

func (Record) Type() Type                     { return TypeRecord }
func (m Record) Append(dst []byte) []byte     { return m.fields(writer(dst)).out }
func (m *Record) Decode(payload []byte) error { return m.fields(reader(TypeRecord, payload)).Finish() }

func (m *Record) fields(c Coder) Coder {
	c.Uint64(&m.View)
	c.copied(&m.Signed, 2, 1, MaxSigned, "bytes of record")
	return c
}
