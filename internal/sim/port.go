package sim

import "time"

// port is a peer's connection to the network: what all its streams share, whoever they
// lead to. A line has a way for each direction; a port has two of its own, so that a
// peer that many write to at once is as slow as its connection, however fast theirs are.
// A nil port has no bounds.
type port struct {
	bandwidth float64 // bytes a second each way, 0 for no limit
	out, in   time.Duration
}

// transmission is the time that n bytes take through the port.
func (p *port) transmission(n int) time.Duration { return Link{Bandwidth: p.bandwidth}.transmission(n) }

// leave hands n bytes, which are there from a moment on, to the port on their way out,
// and tells when the last of them has left it.
func (p *port) leave(from time.Duration, n int) time.Duration {
	if p == nil {
		return from
	}
	p.out = max(p.out, from) + p.transmission(n)
	return p.out
}

// enter hands n bytes, of which the last would be there at a moment, to the port on
// their way in, and tells when the last of them has passed it.
func (p *port) enter(last time.Duration, n int) time.Duration {
	if p == nil {
		return last
	}
	p.in = max(p.in+p.transmission(n), last)
	return p.in
}
