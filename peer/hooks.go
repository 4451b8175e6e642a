package peer

import (
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Hooks are called on goroutines of the peer, one call at a time for each hook.
// They should return soon: the next call waits for them. They must not call
// Close, which waits for them too.
type Hooks struct {
	// Exchanged is called after each exchange, whether it was completed or broke off.
	Exchanged func(Exchanged)
	// Quarantined is called when a partner has sent what no honest peer sends (NaN, values
	// no model of the run can have, frames out of order) and no exchange is made with it
	// for a period. Nothing of what it sent was applied. It is
	// called too for a partner whose messages keep all rules, but whose exchanges raise this
	// peer's loss again and again.
	Quarantined func(partner transport.PeerID, period time.Duration, cause error)
	// Commanded is called for each message of the operator (Network.Control) that was not known before.
	Commanded func(control.Command)
}

// turn lets one call at a time through: a call holds its token.
type turn chan struct{}

func (t turn) take() (end func()) {
	t <- struct{}{}
	return func() { <-t }
}

// hooks calls a user's hooks, one call at a time for each, and skips those that are nil.
type hooks struct {
	of                                Hooks
	exchanged, quarantined, commanded turn
}

// Exchanged implements conversations.Hooks.
func (h *hooks) Exchanged(done collective.Event, took time.Duration, err error) {
	if h.of.Exchanged != nil {
		defer h.exchanged.take()()
		h.of.Exchanged(Exchanged{Partner: done.Peer, Inbound: done.Inbound, Distance: done.Distance, Bytes: done.Bytes, Took: took, Err: err})
	}
}

// Quarantined implements conversations.Hooks.
func (h *hooks) Quarantined(partner transport.PeerID, period time.Duration, cause error) {
	if h.of.Quarantined != nil {
		defer h.quarantined.take()()
		h.of.Quarantined(partner, period, cause)
	}
}

// Commanded implements orders.Listener.
func (h *hooks) Commanded(command control.Command) {
	if h.of.Commanded != nil {
		defer h.commanded.take()()
		h.of.Commanded(command)
	}
}
