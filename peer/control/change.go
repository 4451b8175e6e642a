package control

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Deed is what an operator wants of a peer.
type Deed uint8

// The deeds, as they are on the wire.
const (
	// Drain: the peer leaves the run in good order.
	Drain Deed = iota + 1
	// Admit: the lists of those that may take part are to have the peer.
	Admit
	// Expel: they are not to have it.
	Expel
)

// String is the name of the deed, empty if it is none.
func (d Deed) String() string {
	return map[Deed]string{Drain: "drain", Admit: "admit", Expel: "expel"}[d]
}

// Change is what an operator says of one peer.
type Change struct {
	Peer transport.PeerID
	Do   Deed
	// Since is the sequence of the message that said so first. Operator.Send sets it where it is 0.
	Since uint64
}

// maxChanges bounds the changes of a message. The latest are said again in each, for members that were away.
const maxChanges = 32

// over returns the changes in force once newer ones are said after those that are held. What is newest of a peer's
// place in the lists, and of its leaving, counts; the oldest go where there is no room.
func (c Command) over(held []Change) Command {
	said := c.Changes
	c.Changes = slices.Clone(held)
	for _, n := range said {
		c.Changes = slices.DeleteFunc(c.Changes, func(o Change) bool { return o.Peer == n.Peer && (o.Do == Drain) == (n.Do == Drain) })
		if n.Since == 0 {
			n.Since = c.Sequence
		}
		c.Changes = append(c.Changes, n)
	}
	for len(c.Changes) > len(said) && (len(c.Changes) > maxChanges || len(c.body()) > wire.MaxControlBody) {
		c.Changes = c.Changes[1:]
	}
	return c
}

// changes writes or reads the changes.
func (c *Command) changes(f *wire.Coder) {
	n := f.Count(len(c.Changes), 1, 0, maxChanges, "changes")
	if f.Reading {
		c.Changes = make([]Change, n)
	}
	for i := range c.Changes {
		one := &c.Changes[i]
		f.Text((*string)(&one.Peer), 1, wire.MaxAuthor)
		if f.Uint8((*uint8)(&one.Do)); one.Do < Drain || one.Do > Expel {
			f.Fault("a member to do %d with", one.Do)
		}
		f.Uint64(&one.Since)
	}
}
