package sim

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

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
		n.driver.tell(averaging.Event{Kind: averaging.RunOver})
	}
	n.trainer.begin(0)
}
