package conversations

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

// KeyOf is the key of the exchange of an event.
func KeyOf(e collective.Event) Key { return Key{e.Peer, e.Exchange, e.Inbound} }

// Conversations are the conversations of a peer: each part has the methods for what it does.
type Conversations struct {
	*base
	*outcomes
	*outbound
	*inbound
	*repairs
	*messages
}

// New makes the conversations of a peer.
func New(c Config) *Conversations {
	b := newBase(c)
	o := &outcomes{b}
	w := newMessages(o)
	return &Conversations{
		base: b, outcomes: o, messages: w, repairs: &repairs{base: b},
		outbound: newOutbound(o), inbound: newInbound(o, w),
	}
}

// Kept counts the remembered exchanges that are served, those under way, and the partners
// that are asked about doubts.
func (t *Conversations) Kept() (served, underway, asked int) {
	return t.sessions.kept(), t.underway.kept(), t.repairs.kept()
}
