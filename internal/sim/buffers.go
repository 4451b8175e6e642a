package sim

// Bounds of the buffers kept for reuse.
const (
	// sparePerPeer is their number for each peer of the world: about as many as are
	// under way or being read at once.
	sparePerPeer = 4
	// minSpare is the least size in bytes that is worth it; mixed with smaller ones
	// they would be grown again and again.
	minSpare = 2 << 10
)

// buffers are those of large frames that have arrived, to be used again.
type buffers struct {
	spare [][]byte
	most  int
}

// take returns an empty buffer for n bytes, which may have to grow.
func (b *buffers) take(n int) []byte {
	last := len(b.spare) - 1
	if n < minSpare || last < 0 {
		return nil
	}
	buffer := b.spare[last]
	b.spare = b.spare[:last]
	return buffer[:0]
}

// give takes a buffer that nobody refers to any more.
func (b *buffers) give(buffer []byte) {
	if cap(buffer) >= minSpare && len(b.spare) < b.most {
		b.spare = append(b.spare, buffer)
	}
}
