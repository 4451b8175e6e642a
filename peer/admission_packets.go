package peer

import (
	"fmt"
	"slices"

	"github.com/seed-97356399/murmuration/peer/seam"
)

var _ seam.Packeter = (*guarded)(nil)

// packeter is the transport below, as one that has packets.
func (t *guarded) packeter() (seam.Packeter, error) {
	if packeter, ok := t.Transport.(seam.Packeter); ok {
		return packeter, nil
	}
	return nil, fmt.Errorf("this transport has none: %w", seam.ErrNoPackets)
}

// SendPacket implements seam.Packeter, over a transport that does. The mark goes before
// each packet, if the run has a key: packets know of no others before them.
func (t *guarded) SendPacket(to seam.PeerID, run string, packet []byte) error {
	packeter, err := t.packeter()
	if err != nil {
		return err
	}
	if err := t.guard.admitID(to); err != nil {
		return err
	}
	if len(packet) > seam.MaxPacket {
		return fmt.Errorf("a packet of %d bytes: %w", len(packet), seam.ErrNoPackets)
	}
	if t.guard.keyed() {
		packet = slices.Concat(t.guard.mark, packet)
	}
	return packeter.SendPacket(to, run, packet)
}

// HandlePackets implements seam.Packeter, over a transport that does. A packet of a peer
// that is not admitted is dropped without a word, as any packet may be.
func (t *guarded) HandlePackets(run string, handler func(seam.PeerID, []byte)) (stop func(), err error) {
	packeter, err := t.packeter()
	if err != nil {
		return nil, err
	}
	return packeter.HandlePackets(run, func(from seam.PeerID, packet []byte) {
		if packet, ok := t.guard.unmark(from, packet); ok {
			handler(from, packet)
		}
	})
}

// unmark takes the mark off a packet, and tells whether its sender may take part.
func (g *guard) unmark(from seam.PeerID, packet []byte) (rest []byte, ok bool) {
	if !g.keyed() {
		return packet, g.admitID(from) == nil
	}
	size := len(g.mark)
	if len(packet) < size {
		return nil, false
	}
	return packet[size:], g.Admit(from, packet[:size]) == nil
}
