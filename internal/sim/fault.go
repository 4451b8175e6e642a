package sim

// fate is what befalls one direction of a stream.
type fate uint8

const (
	carried fate = iota
	cutOff       // the stream breaks
	stalled      // the rest is kept back, and nobody is told
)

// Tamper alters what is written to one direction of a stream: it is given each
// frame, which it may keep and change, and returns what arrives in its stead.
type Tamper func(frame []byte) [][]byte

// From is the peer that opened the stream, To the other.
func (s *Stream) From() int { return s.ends[0].peer }

// To is the peer to which the stream was opened.
func (s *Stream) To() int { return s.ends[1].peer }

// writer is the end at which a peer writes.
func (s *Stream) writer(peer int) *end {
	if peer == s.To() {
		return &s.ends[1]
	}
	return &s.ends[0]
}

// CutAfter breaks the stream once the first n bytes of what the given peer writes
// have arrived. What has not arrived by then, either way, is gone.
func (s *Stream) CutAfter(writer int, n int64) {
	e := s.writer(writer)
	e.limit, e.fate = n, cutOff
}

// StallAfter lets only the first n bytes of what the given peer writes arrive,
// until Resume. The stream stays open, and nobody is told.
func (s *Stream) StallAfter(writer int, n int64) {
	e := s.writer(writer)
	e.limit, e.fate = n, stalled
}

// Resume ends the stall of what the given peer writes: what was kept back travels
// now.
func (s *Stream) Resume(writer int) {
	e := s.writer(writer)
	held := e.held
	e.fate, e.held = carried, nil
	for _, send := range held {
		send()
	}
}

// Tamper lets all that the given peer writes from now on be altered.
func (s *Stream) Tamper(writer int, tamper Tamper) { s.writer(writer).tamper = tamper }

// Written is the number of bytes that the given peer has written.
func (s *Stream) Written(writer int) int64 { return s.writer(writer).written }

// stuck tells whether what this end says now is kept back.
func (e *end) stuck() bool { return e.fate == stalled && e.written >= e.limit }
