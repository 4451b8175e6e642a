package sim

import (
	"bytes"
	"fmt"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// word sends what the machine tells another: a frame of its own on the line, which is
// lost if the line is cut before it arrives, and may overtake what streams carry where
// segments of these must be sent again.
func (p *peer) word(a averaging.Action) {
	w := p.world
	partner := w.index[a.Peer]
	l := w.line(p.index, partner)
	if l.cut {
		return
	}
	frame, err := wire.Pack(nil, 0, replica.TellOf(a.Word))
	if err != nil {
		p.broke(partner, fmt.Errorf("telling peer %d %s: %w", partner, a.Word, err))
		return
	}
	p.counts.Sent += int64(len(frame))
	p.counts.Told++
	l.arrive(l.carry(wayOf(p.index, partner), len(frame)), func() {
		if !l.cut {
			w.peers[partner].told(p, frame)
		}
	})
}

// told takes a word in.
func (p *peer) told(from *peer, frame []byte) {
	if p.gone {
		return
	}
	_, payload, err := wire.NewReader(bytes.NewReader(frame), wire.MaxHandshake).Next()
	var m wire.Tell
	if err == nil {
		err = m.Decode(payload)
	}
	if err != nil {
		p.broke(from.index, fmt.Errorf("a word of peer %d: %w", from.index, err))
		return
	}
	p.tell(averaging.Event{Kind: averaging.Told, Peer: from.id, Word: replica.WordOf(m)})
}
