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

// Config is what the conversations of a peer need of that peer.
type Config struct {
	Host       session.Host // without a Peer: the conversations are that
	Membership transport.Membership
	Flock      *flock.Flock
	Presence   *presence.Presence
	*Quarantine
	// Arrival asks a member whether it would have this peer.
	Arrival interface {
		Hello(context.Context, transport.PeerID) (wire.Welcome, error)
	}
	Model   interface{ Open() bool } // tells whether there is one to average
	Trainer Trainer
}

// Trainer is who makes the steps.
type Trainer interface {
	// StepTime is about the time from one step to the next.
	StepTime() time.Duration
	// Unfit is told that what it has given to be sent cannot be.
	Unfit(error)
}

// Loop has the averaging machine decide. It is told on many goroutines.
type Loop interface {
	// Event tells the machine. It may wait for room, and reports false if the peer has stopped.
	Event(collective.Event) (accepted bool)
	// Ask asks the machine about what a partner wants; the answer goes to verdict, which
	// has room for it. It reports false if the peer has stopped.
	Ask(event collective.Event, x *Ongoing, verdict chan<- averaging.Action) bool
	// Doubts: Unresolved may have changed. Corrected: the membership has.
	Doubts()
	Corrected()
}

// Hooks are those of the same names; err is why an exchange broke off.
type Hooks interface {
	Exchanged(done collective.Event, took time.Duration, err error)
	Quarantined(partner transport.PeerID, period time.Duration, cause error)
}
