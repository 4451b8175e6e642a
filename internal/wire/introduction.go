package wire

// Bounds of an introduction, in bytes.
const (
	MaxName    = 32
	MaxVersion = 64
)

// Introduction is what a peer is called, and what it was built from, as it says itself: the
// body of a control message of its own kind, so that releases from before it drop it and
// read digests as ever.
type Introduction struct {
	Incarnation   uint64
	Name, Version string
	// More is what a later release says besides.
	More []byte
}

// Append appends the encoded body to dst.
func (b Introduction) Append(dst []byte) []byte { return b.fields(writer(dst)).out }

// Decode reads a body into b, whose More then is a part of it.
func (b *Introduction) Decode(body []byte) error { return b.fields(reader(TypeControl, body)).Finish() }

func (b *Introduction) fields(c Coder) Coder {
	c.Uint64(&b.Incarnation)
	c.Text(&b.Name, 0, MaxName)
	c.Text(&b.Version, 0, MaxVersion)
	c.remaining(&b.More)
	return c
}
