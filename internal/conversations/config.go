package conversations

import (
	"context"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/presence"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Config is what conversations need from their peer.
type Config struct {
	Host       session.Host // without Peer, which the conversations provide
	Membership transport.Membership
	Flock      *flock.Flock
	Presence   *presence.Presence
	*Quarantine
	// Arrival asks a member whether it would admit this peer.
	Arrival interface {
		Hello(context.Context, transport.PeerID) (wire.Welcome, error)
	}
	Model   interface{ Open() bool } // tells whether there is a model to average
	Trainer Trainer
}

// Trainer makes the steps.
type Trainer interface {
	// StepTime is about the time from one step to the next.
	StepTime() time.Duration
	// Progress is how much of the run is done, 0 to 1.
	Progress() float64
	// Unfit reports that the trainer's values cannot be sent.
	Unfit(error)
}

// Loop passes events to the averaging machine. Its methods are called on many goroutines.
type Loop interface {
	// Event reports an event to the machine. It may wait for room, and returns false if the peer has stopped.
	Event(collective.Event) (accepted bool)
	// Ask asks the machine about a partner's request; the answer goes to verdict, which has
	// room for it. It returns false if the peer has stopped.
	Ask(event collective.Event, x *Ongoing, verdict chan<- averaging.Action) bool
	// Doubts: Unresolved may have changed. Corrected: the membership has changed.
	Doubts()
	Corrected()
}

// Hooks are the user's hooks of the same names; err is why an exchange broke off.
type Hooks interface {
	Exchanged(done collective.Event, took time.Duration, err error)
	Quarantined(partner transport.PeerID, period time.Duration, cause error)
}
