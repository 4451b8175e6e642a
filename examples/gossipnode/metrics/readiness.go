package metrics

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer/control"
)

// readiness tells whether a peer does what it is there for: it has joined, and trains,
// or would but for its operator, or serves those that still do.
func readiness(p Peer) (text string, ready bool) {
	stats, state := p.Stats(), p.State()
	switch {
	case !stats.Joined:
		return "not ready: no member has answered yet; check --join, and that its port can be reached", false
	case state == control.Joining || state == control.Copying:
		return fmt.Sprintf("not ready: %s", state), false
	case state == control.Over:
		return "ready: the work is done, serving the others", true
	}
	return fmt.Sprintf("ready: %s, step %d", state, stats.Steps), true
}
