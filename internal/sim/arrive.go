package sim

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// Arrive lets a peer come that was not there at first or has gone, in another
// incarnation, with all that a member consists of made anew. It copies the model of a
// neighbour over the link to it, of the next one if that goes meanwhile; then it is a
// member, of which the others hear after News.Gossip, and begins to train. Where
// nobody is there, it begins with the values that it has.
func (w *World) Arrive(peer int, m Member) error {
	old := w.peers[peer]
	switch {
	case !old.gone:
		return fmt.Errorf("peer %d arrives, and is there", peer)
	case m.ID != old.id:
		return fmt.Errorf("peer %d arrives as %q, and is %q", peer, m.ID, old.id)
	}
	if err := m.validate(peer); err != nil {
		return err
	}
	p, err := newPeer(w, peer, m)
	if err != nil {
		return err
	}
	w.lose(old) // who comes back is known to have been away
	p.counts, p.incarnation = old.counts, old.incarnation+1
	w.peers[peer] = p
	overlay := w.overlay
	if err := w.admit(p); err != nil {
		return err
	}
	donors := w.overlay.Neighbours(p.id)
	w.overlay = overlay // it is no member yet
	p.arriving = true
	(&newcomer{peer: p, donors: donors}).ask()
	return nil
}

// newcomer is a peer that copies a model.
type newcomer struct {
	*peer
	donors []topology.PeerID // to be asked, in this order
}

// ask asks the next donor, or begins without one.
func (n *newcomer) ask() {
	w := n.world
	if n.gone {
		return
	}
	if len(n.donors) == 0 {
		n.settleIn()
		return
	}
	donor, line := w.peers[w.index[n.donors[0]]], w.line(n.index, w.index[n.donors[0]])
	n.donors = n.donors[1:]
	if line.cut || donor.gone {
		w.queue.After(w.config.Stall, n.ask)
		return
	}
	w.queue.After(line.link.Delay, func() { n.receive(donor, line) })
}

// receive lets a consistent copy of the donor's model travel, slice by slice, and goes
// on to the next donor if it does not arrive.
func (n *newcomer) receive(donor *peer, line *line) {
	w := n.world
	if donor.gone || line.cut {
		w.queue.After(w.config.Stall, n.ask)
		return
	}
	full := make([]float32, donor.replica.Len())
	donor.replica.Consistent(full)
	values := donor.replica.CompactShared(full)
	way := wayOf(donor.index, n.index)
	left := donor.replica.SharedSlices()
	each := wire.HeaderSize + 4*len(values)/max(left, 1)
	var last time.Duration
	var send func()
	send = func() {
		if donor.gone || line.cut {
			w.queue.After(w.config.Stall, n.ask)
			return
		}
		if left == 0 {
			line.arrive(last, func() {
				if !n.gone && n.replica.RestoreShared(values) == nil {
					n.copied = true
					n.settleIn()
				}
			})
			return
		}
		left--
		donor.counts.Sent += int64(each)
		last = max(last, line.carry(way, each))
		w.queue.After(line.left(way)-w.queue.Now(), send)
	}
	send()
}

// settleIn makes the newcomer a member that trains.
func (n *newcomer) settleIn() {
	w := n.world
	if err := w.admit(n.peer); err != nil {
		return // Arrive has tried it
	}
	n.arriving = false
	n.look()
	w.queue.After(w.config.News.Gossip, w.announce)
	if w.over {
		n.tell(averaging.Event{Kind: averaging.RunOver})
	}
	n.step()
}
