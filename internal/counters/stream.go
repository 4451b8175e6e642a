package counters

import "github.com/seed-97356399/murmuration/peer/transport"

// Stream is a stream whose bytes are counted as they move.
type Stream struct {
	transport.Stream
	Counters *Counters
}

// Read implements io.Reader.
func (s Stream) Read(b []byte) (n int, err error) {
	n, err = s.Stream.Read(b)
	s.Counters.Moved(0, 0, uint64(n))
	return n, err
}

// Write implements io.Writer.
func (s Stream) Write(b []byte) (n int, err error) {
	n, err = s.Stream.Write(b)
	s.Counters.Moved(0, uint64(n), 0)
	return n, err
}
