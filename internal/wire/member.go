package wire

// Bounds of a MEMBER frame's fields, in bytes; package peer/control has the fields.
const (
	MaxName    = 32
	MaxVersion = 64
	// MaxPartners bounds the partners in a digest; MaxDigest is the size of a digest with that many.
	MaxPartners = 16
	MaxDigest   = 5*8 + 2 + 3*8 + 1 + MaxPartners*12
	// MaxMember leaves room for fields of later releases.
	MaxMember = 1024
)
