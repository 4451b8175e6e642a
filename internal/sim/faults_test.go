package sim

// The faults that tests alone ask for.

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

// Freeze holds back all that travels between two peers, without telling them,
// until Thaw.
func (w *World) Freeze(a, b int) { w.line(a, b).frozen = true }

// Thaw ends a freeze: what was held back arrives.
func (w *World) Thaw(a, b int) { w.line(a, b).thaw() }

// thaw ends a freeze: what was held arrives now, in the order in which it came.
func (l *line) thaw() {
	if !l.frozen {
		return
	}
	l.frozen = false
	l.queue.After(0, func() {
		for len(l.held) > 0 && !l.frozen {
			next := l.held[0]
			l.held = l.held[1:]
			next()
		}
	})
}
