package control

import (
	"cmp"
	"slices"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
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
	// Move: the peer is to say that it is at a site (Change.Site).
	Move
	// Train: the peer is to train, if it can. Rest: it is to train no more, and stays a member.
	Train
	Rest
	// Weigh: of the rows that members hold, the peer is to be given another share (Change.Weight).
	Weigh
)

// The least and the most weight of a peer; all others weigh 1.
const (
	LeastWeight = 0.01
	MostWeight  = 100
)

// String is the name of the deed, empty if it is none.
func (d Deed) String() string {
	return map[Deed]string{Drain: "drain", Admit: "admit", Expel: "expel", Move: "site", Train: "train", Rest: "rest", Weigh: "weight"}[d]
}

// Change is what an operator says of one peer.
type Change struct {
	Peer transport.PeerID
	Do   Deed
	// Site is the name of the site, with Move; empty: the site without a name.
	Site string
	// Weight is how much of the rows that are handed out the peer is given, beside the 1 of the others, with Weigh.
	Weight float64
	// Since is the sequence of the message that said so first. Operator.Send sets it where it is 0.
	Since uint64
}

// maxChanges bounds the changes of a message. The latest are said again in each, for members that were away.
const maxChanges = 32

// replaces tells whether a change leaves nothing of an earlier one: of the same peer, of its place in the lists, its
// leaving, its site, whether it trains, or its weight.
func (n Change) replaces(o Change) bool {
	ofList := func(d Deed) bool { return d == Admit || d == Expel }
	ofTraining := func(d Deed) bool { return d == Train || d == Rest }
	return o.Peer == n.Peer && (o.Do == n.Do || ofList(o.Do) && ofList(n.Do) || ofTraining(o.Do) && ofTraining(n.Do))
}

// over returns the changes in force once newer ones are said after those that are held; the oldest go where there is
// no room.
func (c Command) over(held []Change) Command {
	said := c.Changes
	c.Changes = slices.Clone(held)
	for _, n := range said {
		c.Changes = slices.DeleteFunc(c.Changes, n.replaces)
		n.Since = cmp.Or(n.Since, c.Sequence)
		c.Changes = append(c.Changes, n)
	}
	for len(c.Changes) > len(said) && (len(c.Changes) > maxChanges || len(c.body()) > wire.MaxControlBody) {
		c.Changes = c.Changes[1:]
	}
	return c
}

// changes writes or reads the changes. Those of SetDuties have a kind of message of their own: releases that do not know it pass it on,
// where they would drop all changes of members for a deed that they do not know.
func (c *Command) changes(f *wire.Coder) {
	first, last := Drain, Move
	if c.Kind == SetDuties {
		first, last = Train, Weigh
	}
	n := f.Count(len(c.Changes), 1, 0, maxChanges, "changes")
	if f.Reading {
		c.Changes = make([]Change, n)
	}
	for i := range c.Changes {
		one := &c.Changes[i]
		f.Text((*string)(&one.Peer), 1, wire.MaxAuthor)
		if f.Uint8((*uint8)(&one.Do)); one.Do < first || one.Do > last {
			f.Fault("a member to do %d with", one.Do)
		}
		if f.Uint64(&one.Since); one.Do == Move {
			f.Text(&one.Site, 0, topology.MaxSite)
		}
		if one.Do == Weigh {
			if f.Float(&one.Weight); !(one.Weight >= LeastWeight && one.Weight <= MostWeight) {
				f.Fault("a weight of %v", one.Weight)
			}
		}
		if err := (topology.Place{Site: one.Site}).Validate(); err != nil {
			f.Fault("%v", err)
		}
	}
}
