package talks

import (
	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/topology"
)

// Key names an exchange or a transfer among all that a peer takes part in.
type Key struct {
	Peer     topology.PeerID
	Exchange averaging.ExchangeID
	Inbound  bool
}

// KeyOf is the key of what an event is about.
func KeyOf(e collective.Event) Key { return Key{e.Peer, e.Exchange, e.Inbound} }

// Talks are the conversations of a peer: each part has the methods for what it does.
type Talks struct {
	*base
	*outcomes
	*outbound
	*inbound
	*repairs
	*words
}

// New makes the talks of a peer.
func New(c Config) *Talks {
	b := newBase(c)
	o := &outcomes{b}
	w := newWords(o)
	return &Talks{
		base: b, outcomes: o, words: w, repairs: &repairs{base: b},
		outbound: newOutbound(o), inbound: newInbound(o, w),
	}
}

// Kept counts what is remembered of exchanges that are served, of those under way, and of
// partners that are asked about doubts.
func (t *Talks) Kept() (served, underway, asked int) {
	return t.sessions.kept(), t.underway.kept(), t.repairs.kept()
}
