package memnet

import (
	"math"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// Fate is what becomes of one direction of a stream.
type Fate int

const (
	// Pass: nothing.
	Pass Fate = iota
	// Break: the stream breaks behind the bytes that were sent. The end that they
	// are for reads them all and then fails with ErrReset; the end that sent them
	// fails at once, whatever it has not read yet.
	Break
	// Stall: the bytes that were sent arrive; what follows them, the end of the
	// stream and its reset included, is held back until Release.
	Stall
)

// Passage says where tapped bytes pass.
type Passage struct {
	From, To seam.PeerID
	Protocol seam.Protocol
	Run      string
	// Lane is the lane that the stream was opened on, 0 for Open.
	Lane int
	// Stream numbers the streams between the two peers in the order of opening,
	// from 1.
	Stream int
	// Offset is the number of bytes written in this direction of the stream before,
	// as they were before they were tapped.
	Offset int64
}

// Tap stands between a writer and its stream. It is given what one Write was
// given, and returns what goes on its way instead, more or fewer bytes, and what
// happens once they are on it. The writer is told that its own bytes were
// written. A tap must neither change nor keep b; it may return b, a part of it, or
// other bytes, which it leaves alone from then on. Calls for one direction come
// one at a time. A tap may call the Network, to Crash a peer for example.
type Tap func(at Passage, b []byte) (out []byte, then Fate)

// SetTap taps all streams from one peer to another, on every lane, in place of
// the tap there was; nil is none. To alter both directions, set two.
func (n *Network) SetTap(from, to seam.PeerID, tap Tap) {
	c := n.cable(from, to)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[c.side(from)].tap = tap
}

// CutAfter breaks every stream between two peers, as Break says, once that many
// more bytes have gone from one to the other: 0 breaks them now. Streams that are
// opened afterwards are whole. Bytes count when they are written; those of all
// streams and lanes count together, and a tap's after the tap. It replaces a
// CutAfter or StallAfter of the same direction that has yet to strike.
func (n *Network) CutAfter(from, to seam.PeerID, bytes int64) {
	n.cable(from, to).limit(from, bytes, Break)
}

// StallAfter stalls every stream from one peer to another, as Stall says, those
// opened later too, once that many more bytes have gone that way: 0 stalls them
// now. Streams can still be opened. It counts, and replaces, as CutAfter does.
func (n *Network) StallAfter(from, to seam.PeerID, bytes int64) {
	n.cable(from, to).limit(from, bytes, Stall)
}

// Release ends every stall from one peer to another, and calls off a StallAfter or
// CutAfter that has yet to strike. What was held back is sent from now on.
func (n *Network) Release(from, to seam.PeerID) {
	c := n.cable(from, to)
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.faults[c.side(from)]
	f.stalled, f.then = false, Pass
	for _, s := range c.streams {
		e := &s.ends[c.side(from)]
		e.stalled = false
		e.release(c.net.now())
	}
}

// faults are what goes wrong in one direction of a cable.
type faults struct {
	left    int64 // bytes until then happens, unless that is Pass
	then    Fate
	stalled bool

	tap     Tap
	tapping sync.Mutex // held during a call of tap, never together with the cable's
}

// limit makes a fault happen once a peer has sent a number of bytes.
func (c *cable) limit(from seam.PeerID, bytes int64, then Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	side := c.side(from)
	c.faults[side].left, c.faults[side].then = max(bytes, 0), then
	c.sent(side, 0, c.net.now())
}

// room is the number of bytes that may be sent before a fault happens.
func (f *faults) room() int {
	if f.then == Pass {
		return math.MaxInt
	}
	return int(min(f.left, math.MaxInt))
}

// sent counts bytes and lets the fault that they lead to happen.
func (c *cable) sent(side, size int, now time.Duration) {
	f := &c.faults[side]
	if f.left -= int64(size); f.then == Pass || f.left > 0 {
		return
	}
	then := f.then
	f.then = Pass
	if then == Stall {
		f.stalled = true
		return
	}
	for _, s := range c.streams {
		s.ends[side].tear(now)
	}
}

// tapped returns what a tap makes of bytes that are about to be written.
func (e *end) tapped(p []byte) ([]byte, Fate) {
	c := e.cable
	c.mu.Lock()
	f := &c.faults[e.side]
	tap := f.tap
	lost := e.fault(c.net.now(), e.writeBy, e.wroteEnd) != nil
	c.mu.Unlock()
	if tap == nil || lost {
		return p, Pass
	}
	s := e.stream
	f.tapping.Lock()
	defer f.tapping.Unlock()
	return tap(Passage{
		From: e.local.Self(), To: e.remote, Protocol: s.route.protocol, Run: s.route.run,
		Lane: s.lane, Stream: s.number, Offset: e.written,
	}, p)
}

// meet lets a tap's fate happen to what this end sends.
func (e *end) meet(then Fate, now time.Duration) {
	switch then {
	case Break:
		e.tear(now)
	case Stall:
		e.stalled = true
	}
}

// tear breaks the stream behind what this end has sent; the owners of both ends
// still have to close them.
func (e *end) tear(now time.Duration) {
	in := &e.other().in
	if !in.ended {
		in.ended = true
		in.endAt, _ = e.send(now, 0)
	}
	in.torn = true
	e.wroteEnd = true
	e.resetAt = min(e.resetAt, now)
	e.wake()
}

// held tells whether what this end sends is held back.
func (e *end) held() bool {
	return e.cable.cut || e.cable.faults[e.side].stalled || e.stalled
}
