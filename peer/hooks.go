package peer

import (
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// hookCalls calls a user's hooks, one call at a time for each.
type hookCalls struct {
	hooks                          Hooks
	exchanging, fails, quarantines chan struct{} // each holds a token for the call that runs
}

func newHookCalls(hooks Hooks) hookCalls {
	return hookCalls{hooks: hooks, exchanging: make(chan struct{}, 1), fails: make(chan struct{}, 1), quarantines: make(chan struct{}, 1)}
}

func (h *hookCalls) exchanged(x Exchanged) {
	if h.hooks.Exchanged == nil {
		return
	}
	h.exchanging <- struct{}{}
	defer func() { <-h.exchanging }()
	h.hooks.Exchanged(x)
}

func (h *hookCalls) failed(partner seam.PeerID, err error) {
	if h.hooks.Failed == nil {
		return
	}
	h.fails <- struct{}{}
	defer func() { <-h.fails }()
	h.hooks.Failed(partner, err)
}

func (h *hookCalls) quarantined(partner seam.PeerID, term time.Duration, offence error) {
	if h.hooks.Quarantined == nil {
		return
	}
	h.quarantines <- struct{}{}
	defer func() { <-h.quarantines }()
	h.hooks.Quarantined(partner, term, offence)
}
