package sim

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/topology"
)

// joiner is a peer that copies a model.
type joiner struct {
	*peer
	servers []topology.PeerID // state servers still to ask, in this order
}

// ask asks the next state server, or begins without one.
func (n *joiner) ask() {
	w := n.world
	if n.gone {
		return
	}
	if len(n.servers) == 0 {
		if n.staged == nil || !n.fetch(n.settleIn) {
			n.settleIn()
		}
		return
	}
	server, line := w.peers[w.index[n.servers[0]]], w.line(n.index, w.index[n.servers[0]])
	n.servers = n.servers[1:]
	if line.cut || server.gone {
		w.queue.After(w.config.Stall, n.ask)
		return
	}
	w.queue.After(line.link.Delay, func() { n.receive(server, line) })
}

// receive transfers a consistent copy of the state server's model, slice by slice, and asks
// the next state server if the copy does not arrive.
func (n *joiner) receive(server *peer, line *line) {
	w := n.world
	full := make([]float32, server.replica.Len())
	server.replica.Consistent(full)
	values := server.replica.CompactShared(full)
	way := wayOf(server.index, n.index)
	left := server.replica.SharedSlices()
	each := wire.HeaderSize + 4*len(values)/max(left, 1)
	var last time.Duration
	var send func()
	send = func() {
		if server.gone || line.cut {
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
		server.sent(n.index, each)
		last = max(last, line.carry(way, each))
		w.queue.After(line.left(way)-w.queue.Now(), send)
	}
	send()
}

// settleIn makes the joiner a member that trains.
func (n *joiner) settleIn() {
	w := n.world
	if err := w.admit(n.peer); n.gone || err != nil {
		return // Arrive has checked that it succeeds
	}
	n.arriving = false
	if n.staged != nil {
		n.staged.came = w.queue.Now()
	}
	n.look()
	w.queue.After(w.config.News.Gossip, w.announce)
	if w.over {
		n.driver.tell(averaging.Event{Kind: averaging.RunOver})
	}
	n.trainer.begin(0)
}

// fetch copies the newest copy of a stage that nobody holds, if a member keeps one, and calls done after that.
func (n *joiner) fetch(done func()) (has bool) {
	w := n.world
	var newest kept
	var from *peer
	for _, p := range w.peers {
		if p.staged == nil || p.staged.idle() {
			continue
		}
		if k := p.staged.keeps.kept[n.stage]; k.values != nil && (from == nil || k.at > newest.at) {
			newest, from = k, p
		}
	}
	if from == nil {
		return false
	}
	bytes := wordBytes + 4*len(newest.values)
	from.sent(n.index, bytes)
	l := w.line(from.index, n.index)
	l.arrive(l.carry(wayOf(from.index, n.index), bytes), func() {
		if !n.gone && n.replica.RestoreShared(newest.values) == nil {
			n.copied = true
		}
		done()
	})
	return true
}
