package sim

import (
	"slices"
	"time"
)

// line is a link in the world, between the peers of one pair.
type line struct {
	queue  *Queue
	spare  *buffers
	chance func() float64
	link   Link
	resent func(segments int) // called when segments are lost; may be nil
	// ports are those of the peers, the lower index first.
	ports [2]*port
	// uplinks are those of the peers' sites; nil within one.
	uplinks [2]*port
	// free is when the last byte handed over, each way, will have left.
	free    [2]time.Duration
	streams []*Stream // still open, the oldest first
	cut     bool
	frozen  bool
	held    []func() // arrivals that wait while the line is frozen; the streams' windows bound them
}

// carry hands n bytes to one way of the line and tells when the last of them
// arrives.
func (l *line) carry(way, n int) time.Duration {
	segments, worst := l.link.resent(n, l.chance)
	began, n := max(l.free[way], l.queue.Now()), n+segments*segment
	l.free[way] = began + l.link.transmission(n)
	arrived := max(l.free[way], l.ports[way].leave(began, n), l.uplinks[way].leave(began, n)) + l.link.Delay + time.Duration(worst)*(2*l.link.Delay+resendPause)
	if segments > 0 && l.resent != nil {
		l.resent(segments)
	}
	return l.ports[1-way].enter(l.queue.Now(), l.uplinks[1-way].enter(l.queue.Now(), arrived, n), n)
}

// left is when all that was handed to one way so far has left.
func (l *line) left(way int) time.Duration {
	return max(l.free[way], l.ports[way].leave(0, 0), l.uplinks[way].leave(0, 0))
}

// arrive calls do at a time, or when the line is thawed.
func (l *line) arrive(at time.Duration, do func()) {
	l.queue.After(at-l.queue.Now(), func() {
		if l.frozen || len(l.held) > 0 {
			l.held = append(l.held, do)
			return
		}
		do()
	})
}

// sever cuts the line: every stream on it breaks.
func (l *line) sever() {
	l.cut = true
	for len(l.streams) > 0 {
		l.streams[0].sever()
	}
}

// forget drops a stream that is over.
func (l *line) forget(s *Stream) {
	l.streams = slices.DeleteFunc(l.streams, func(other *Stream) bool { return other == s })
}

// port is a peer's connection to the network, or that of a site to the others, which all its streams share. A line has
// one queue for each direction, and so has a port: a peer to which many write at once
// receives no faster than its own port, however fast the senders' are. A nil port has no
// bounds.
type port struct {
	bandwidth float64       // bytes a second each way, 0 for no limit
	out       time.Duration // when all that was handed over has left
	in        []span        // when it will be receiving, the earliest first
}

// span is a time from a moment to another.
type span struct{ from, to time.Duration }

// transmission is the time that n bytes take through the port.
func (p *port) transmission(n int) time.Duration { return Link{Bandwidth: p.bandwidth}.transmission(n) }

// leave sends n bytes, ready at a given time, out through the port, and returns when
// the last of them has left it.
func (p *port) leave(from time.Duration, n int) time.Duration {
	if p == nil {
		return from
	}
	p.out = max(p.out, from) + p.transmission(n)
	return p.out
}

// enter takes n bytes, whose last would arrive at a given time, in through the port, and returns when the last of them
// has passed it: at the first time at which nothing else does. What is on its way may be overtaken by what arrives before it.
func (p *port) enter(now, last time.Duration, n int) time.Duration {
	if p == nil || p.bandwidth == 0 {
		return last
	}
	p.in = slices.DeleteFunc(p.in, func(s span) bool { return s.to <= now })
	took, at := p.transmission(n), 0
	for ; at < len(p.in) && p.in[at].from < last; at++ {
		if s := p.in[at]; s.to > last-took {
			last = s.to + took
		}
	}
	if at > 0 && p.in[at-1].to == last-took {
		p.in[at-1].to = last
	} else {
		p.in = slices.Insert(p.in, at, span{last - took, last})
	}
	return last
}
