package dashboard

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// pair is who began exchanges, and with whom.
type pair struct{ from, to seam.PeerID }

// pulse is exchanges of a pair that the page lights a link up for.
type pulse struct {
	count uint64
	// over is the time over which they happened, as far as is known: those of others
	// are told in sums.
	over time.Duration
}

// heard is what another peer said last of a pair.
type heard struct {
	exchanges uint64
	at        time.Time
}

// toldPulse is a pulse as the page is told.
type toldPulse struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Count uint64  `json:"count"`
	Over  float64 `json:"over"` // seconds
}

// Exchanged takes an exchange of this peer's own.
func (b *Board) Exchanged(x peer.Exchanged) {
	self := seam.PeerID(b.about.Self)
	p := pair{self, x.Partner}
	if x.Inbound {
		p = pair{x.Partner, self}
	}
	b.mu.Lock()
	b.pulse(p, 1, 0)
	b.mu.Unlock()
}

// Failed takes an exchange of this peer's own that broke off.
func (b *Board) Failed(partner seam.PeerID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.tell("events", []happening{b.happened("failed", partner, "an exchange broke off; others are asked", err)})
}

// Quarantined takes that this peer keeps a partner away.
func (b *Board) Quarantined(partner seam.PeerID, term time.Duration, offence error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.tell("events", []happening{b.happened("quarantined", partner, fmt.Sprintf("broke the rules, and is kept away for %s", term.Round(time.Second)), offence)})
}

// pulse notes exchanges of a pair. The lock is held.
func (b *Board) pulse(p pair, count uint64, over time.Duration) {
	was, known := b.pulses[p]
	if !known && len(b.pulses) >= maxPulses {
		return // there is light enough
	}
	b.pulses[p] = pulse{was.count + count, max(was.over, over)}
}

// hear makes pulses of what others' digests tell of their exchanges, this peer's own
// left out: it knows those better. The lock is held.
func (b *Board) hear(v *view) {
	now := make(map[pair]heard, len(b.met))
	for _, d := range v.digests {
		for _, m := range d.Partners {
			p := pair{d.Peer, m.Partner}
			if string(d.Peer) == b.about.Self || string(m.Partner) == b.about.Self {
				continue
			}
			was, known := b.met[p]
			if known && m.Exchanges > was.exchanges {
				b.pulse(p, m.Exchanges-was.exchanges, d.Heard.Sub(was.at))
			}
			if known && m.Exchanges == was.exchanges && !d.Heard.After(was.at) {
				now[p] = was
				continue
			}
			now[p] = heard{m.Exchanges, d.Heard}
		}
	}
	b.met = now
}

// tellPulses tells of the exchanges since it last did. The lock is held.
func (b *Board) tellPulses() {
	if len(b.pulses) == 0 {
		return
	}
	told := make([]toldPulse, 0, len(b.pulses))
	for p, n := range b.pulses {
		told = append(told, toldPulse{string(p.from), string(p.to), n.count, n.over.Seconds()})
	}
	clear(b.pulses)
	b.hub.tell("exchanges", told)
}
