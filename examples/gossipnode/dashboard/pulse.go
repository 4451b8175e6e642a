package dashboard

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// pair is who began exchanges, and with whom.
type pair struct{ from, to transport.PeerID }

// pulse is exchanges of a pair that the page lights a link up for.
type pulse struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count uint64 `json:"count"`
	// Over is the time over which they happened, in seconds, as far as is known: those of
	// others are told in sums.
	Over float64 `json:"over"`
}

// lastDigest is the last figure of another peer about a pair.
type lastDigest struct {
	exchanges uint64
	at        time.Time
}

// pulses gathers exchanges for the page, between whomever. Its owner locks it.
type pulses struct {
	self transport.PeerID
	new  map[pair]pulse      // since the page was last told
	met  map[pair]lastDigest // exchanges of others, as last told
}

// add notes exchanges of a pair.
func (b *pulses) add(p pair, count uint64, over time.Duration) {
	was, known := b.new[p]
	if !known && len(b.new) >= maxPulses {
		return // there is light enough
	}
	b.new[p] = pulse{string(p.from), string(p.to), was.Count + count, max(was.Over, over.Seconds())}
}

// receive makes pulses of what others' digests tell of their exchanges, this peer's own
// left out: it knows those better.
func (b *pulses) receive(v *view) {
	now := make(map[pair]lastDigest, len(b.met))
	for _, m := range v.tell {
		for _, met := range m.Partners {
			p := pair{m.ID, met.Partner}
			if m.ID == b.self || met.Partner == b.self {
				continue
			}
			was, known := b.met[p]
			if known && met.Exchanges > was.exchanges {
				b.add(p, met.Exchanges-was.exchanges, m.Received.Sub(was.at))
			}
			now[p] = lastDigest{met.Exchanges, m.Received}
		}
	}
	b.met = now
}

// tell tells of the exchanges since it last did.
func (b *pulses) tell(to *hub) {
	if len(b.new) == 0 {
		return
	}
	to.tell("exchanges", slices.Collect(maps.Values(b.new)))
	clear(b.new)
}
