package memnet

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// postbox is where the packets of one run go; its lock is held while a packet is
// handled.
type postbox struct {
	mu      sync.Mutex
	handler func(transport.PeerID, []byte)
}

// SendPacket implements transport.Packets: the packet takes the link's delay, and is lost
// with the link's probability or on a cut one. Bandwidth it takes none.
func (t *Transport) SendPacket(peer transport.PeerID, run string, packet []byte) error {
	if len(packet) > transport.MaxPacket+transport.MaxMark {
		return fmt.Errorf("memnet: a packet of %d bytes: %w", len(packet), transport.ErrNoPackets)
	}
	if t.isStopped() {
		return fmt.Errorf("memnet: send a packet: %w", transport.ErrClosed)
	}
	c := t.net.cable(t.Self(), peer)
	c.mu.Lock()
	side := c.side(t.Self())
	if c.dice[side] == nil {
		c.dice[side] = t.net.random(t.Self(), peer, 1+transport.MaxLane)
	}
	lost, delay := c.cut || c.dice[side].Float64() < c.link.Loss, c.link.Delay
	c.mu.Unlock()
	if lost {
		return nil
	}
	sent := slices.Clone(packet)
	time.AfterFunc(delay, func() {
		remote := t.net.lookup(peer)
		if remote != nil && !c.isCut() {
			remote.deliver(t.Self(), run, sent)
		}
	})
	return nil
}

func (t *Transport) deliver(from transport.PeerID, run string, packet []byte) {
	t.mu.Lock()
	box := t.boxes[run]
	t.mu.Unlock()
	if box == nil {
		return
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if box.handler != nil {
		box.handler(from, packet)
	}
}

// HandlePackets implements transport.Packets.
func (t *Transport) HandlePackets(run string, handler func(transport.PeerID, []byte)) (stop func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil, fmt.Errorf("memnet: take packets of run %q: %w", run, transport.ErrClosed)
	}
	if t.boxes[run] != nil {
		return nil, fmt.Errorf("memnet: packets of run %q are taken already", run)
	}
	if t.boxes == nil {
		t.boxes = make(map[string]*postbox)
	}
	box := &postbox{handler: handler}
	t.boxes[run] = box
	return func() {
		t.mu.Lock()
		if t.boxes[run] == box {
			delete(t.boxes, run)
		}
		t.mu.Unlock()
		box.mu.Lock()
		box.handler = nil
		box.mu.Unlock()
	}, nil
}
