package baseline

import (
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
)

// Alone is the floor: the machine of a peer that trains by itself: it initiates nothing,
// declines every proposal and never holds the trainer back. The zero value is
// ready.
type Alone struct{}

// Handle implements averaging.Machine.
func (Alone) Handle(_ time.Duration, event averaging.Event, actions []averaging.Action) []averaging.Action {
	switch event.Kind {
	case averaging.StepDone:
		return append(actions, averaging.Action{Kind: averaging.Proceed})
	case averaging.Proposed:
		return append(actions, averaging.Action{
			Kind: averaging.Refuse, Peer: event.Peer, Exchange: event.Exchange, Inbound: true, Reason: averaging.WrongRole,
		})
	case averaging.RunOver:
		return append(actions, averaging.Action{Kind: averaging.Settled})
	}
	return actions
}

// Algorithm names it to other peers.
func (Alone) Algorithm() collective.Algorithm { return collective.Alone }
