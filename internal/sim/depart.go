package sim

import (
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Crash takes a peer out of the world as a machine is whose plug is pulled: from now on
// it does nothing, what is under way to and from it is gone, and nobody is told. Its
// partners stall; after News.Crash the others have found out and it is a member no
// more. A peer that is not there stays away.
func (w *World) Crash(peer int) {
	p := w.peers[peer]
	if p.gone {
		return
	}
	p.vanish(func(s *Stream) {
		s.dead = true
		s.line.forget(s)
	})
	w.queue.After(w.config.News.Crash, func() { w.lose(p) })
}

// Leave takes a peer out of the world as a program that is asked to end: its streams
// break, of which its partners hear at once, and after News.Gossip everybody knows.
// What it has learned since its last exchange goes with it.
func (w *World) Leave(peer int) {
	p := w.peers[peer]
	if p.gone {
		return
	}
	p.vanish((*Stream).sever)
	w.queue.After(w.config.News.Gossip, func() { w.lose(p) })
}

// Here tells whether a peer is there: neither gone nor yet to come.
func (w *World) Here(peer int) bool { return !w.peers[peer].gone }

// vanish ends all that the peer does. End says what becomes of its streams.
func (p *peer) vanish(end func(*Stream)) {
	p.gone = true
	for _, t := range p.talks {
		t.over, t.end.deaf = true, true
		end(t.end.stream)
	}
	p.talks, p.events = nil, nil
	clear(p.running)
}

// lose lets the others know that a peer has gone, once.
func (w *World) lose(gone *peer) {
	if _, member := w.overlay.View().Lookup(gone.id); !member || gone.missed {
		return
	}
	gone.missed = true
	if err := w.dismiss(gone.id); err != nil {
		return // a view of fewer members of a good one is good
	}
	for _, p := range w.peers {
		if p != gone {
			p.loseTouch(gone)
		}
	}
	w.announce()
}

// loseTouch breaks off what runs with a peer that has gone.
func (p *peer) loseTouch(gone *peer) {
	if p.gone {
		return
	}
	for _, t := range append([]*talk(nil), p.talks...) {
		if t.partner == gone.index {
			t.breakOff(fmt.Errorf("peer %d has gone: %w", gone.index, ErrUnreachable))
		}
	}
	p.tell(averaging.Event{Kind: averaging.PeerLost, Peer: gone.id})
}

// absent is a member that has yet to come: it holds its place among the peers.
func absent(w *World, index int, id topology.PeerID) *peer {
	return &peer{world: w, index: index, id: id, gone: true, missed: true}
}
