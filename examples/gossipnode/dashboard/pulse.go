package dashboard

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// pair is the initiator of exchanges and its partner.
type pair struct{ from, to transport.PeerID }

// pulse is a number of exchanges of a pair, for which the page lights up a link.
type pulse struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count uint64 `json:"count"`
	// Over is the time in which they happened, in seconds, as far as known: digests of other members have only sums.
	Over float64 `json:"over"`
}

// lastDigest is the last count about a pair in another peer's digest.
type lastDigest struct {
	exchanges uint64
	at        time.Time
}

// pulses collects the exchanges of all pairs for the page. Its owner locks it.
type pulses struct {
	self transport.PeerID
	new  map[pair]pulse      // since the last message to the page
	met  map[pair]lastDigest // exchanges of other peers in their last digests
}

// add adds exchanges of a pair.
func (b *pulses) add(p pair, count uint64, over time.Duration) {
	was, known := b.new[p]
	if !known && len(b.new) >= maxPulses {
		return // the page shows enough pulses already
	}
	b.new[p] = pulse{string(p.from), string(p.to), was.Count + count, max(was.Over, over.Seconds())}
}

// receive makes pulses of the exchanges in others' digests. It ignores exchanges of this peer, which knows these
// better itself.
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

// tell sends the exchanges since its last call.
func (b *pulses) tell(to *hub) {
	if len(b.new) == 0 {
		return
	}
	to.tell("exchanges", slices.Collect(maps.Values(b.new)))
	clear(b.new)
}
