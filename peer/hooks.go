package peer

import (
	"sync"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// hookCalls calls a user's hooks, one call at a time for each.
type hookCalls struct {
	hooks         Hooks
	exchangedOnce sync.Mutex
	failedOnce    sync.Mutex
}

func (h *hookCalls) exchanged(x Exchanged) {
	if h.hooks.Exchanged == nil {
		return
	}
	h.exchangedOnce.Lock()
	defer h.exchangedOnce.Unlock()
	h.hooks.Exchanged(x)
}

func (h *hookCalls) failed(partner seam.PeerID, err error) {
	if h.hooks.Failed == nil {
		return
	}
	h.failedOnce.Lock()
	defer h.failedOnce.Unlock()
	h.hooks.Failed(partner, err)
}
