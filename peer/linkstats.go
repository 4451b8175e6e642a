package peer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// MaxLinkStats bounds the links that Stats lists: those used last.
const MaxLinkStats = 16

// LinkStats is what the exchanges that a peer initiated have shown of the way to one
// partner.
type LinkStats struct {
	Partner seam.PeerID
	// Codec is the name of the codec on which the link decides; empty where the
	// policy leaves nothing to the link.
	Codec string
	// Rate is what the link carries, in bytes a second of the busier direction (at
	// least: exchanges that hardly move anything cannot tell), and Round the time from
	// a question to its answer.
	Rate  float64
	Round time.Duration
	// Again is the share of blocks that had to be sent again.
	Again float64
	// Exchanges counts those that were measured.
	Exchanges uint64
}

// report fills in what is known of the links. Choosing tells whether they decide on
// codecs.
func (l *links) report(s *ExchangeStats, choosing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if choosing {
		s.Codecs = make(map[string]int)
	}
	seen := make([]seam.PeerID, 0, len(l.known))
	for id, k := range l.known {
		seen = append(seen, id)
		if choosing {
			s.Codecs[k.codec()]++
		}
	}
	slices.SortFunc(seen, func(a, b seam.PeerID) int {
		return cmp.Or(l.known[b].seen.Compare(l.known[a].seen), cmp.Compare(a, b))
	})
	seen = seen[:min(len(seen), MaxLinkStats)]
	slices.Sort(seen)
	for _, id := range seen {
		k := l.known[id]
		one := LinkStats{Partner: id, Rate: k.rate, Round: k.round, Again: k.failed, Exchanges: k.exchanges}
		if choosing {
			one.Codec = k.codec()
		}
		s.Links = append(s.Links, one)
	}
}

// codec is the name of the link's choice.
func (k *link) codec() string {
	codec, _ := quant.ByID(choices()[k.choice])
	return codec.Name
}
