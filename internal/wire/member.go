package wire

// Bounds of a MEMBER frame's fields, in bytes; package peer/control has its fields.
const (
	MaxName    = 32
	MaxVersion = 64
	// MaxPartners bounds the partners that a digest tells of, MaxDigest is its size with all.
	MaxPartners = 16
	MaxDigest   = 5*8 + 2 + 3*8 + 1 + MaxPartners*12
	// MaxMember leaves room for what later releases add.
	MaxMember = 1024
)
