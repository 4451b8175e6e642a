package baseline

import (
	"slices"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// electorate is who may coordinate, in the order in which they come.
type electorate struct {
	self   topology.PeerID
	named  topology.PeerID // who alone may, if there is one
	order  collective.Members
	silent []topology.PeerID // are not reckoned with until they speak
	none   []topology.PeerID // know no coordinator
}

// others are the members that are reckoned with, this peer excluded.
func (e *electorate) others(yield func(topology.PeerID) bool) {
	for _, id := range e.order {
		if id != e.self && !slices.Contains(e.silent, id) && !yield(id) {
			return
		}
	}
}

// first is who is to coordinate. This peer is in its view.
func (e *electorate) first() topology.PeerID {
	if e.named != "" {
		return e.named
	}
	return e.order[slices.IndexFunc(e.order, func(id topology.PeerID) bool { return id == e.self || !slices.Contains(e.silent, id) })]
}

func (e *electorate) allKnowNone() bool {
	for id := range e.others {
		if !slices.Contains(e.none, id) {
			return false
		}
	}
	return true
}

func (e *electorate) knowsNone(id topology.PeerID) {
	if !slices.Contains(e.none, id) {
		e.none = append(e.none, id)
	}
}

// pass notes that nobody is to wait for a peer until it speaks.
func (e *electorate) pass(id topology.PeerID) {
	if !slices.Contains(e.silent, id) {
		e.silent = append(e.silent, id)
	}
}
