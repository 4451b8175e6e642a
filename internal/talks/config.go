package talks

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/roster"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/tally"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// Config is what talks need of the peer whose they are.
type Config struct {
	Host       session.Host // without a Peer: the talks are asked themselves
	Transport  seam.Transport
	Membership seam.Membership
	Flock      *flock.Flock
	Roster     *roster.Roster
	Tally      *tally.Tally
	Log        *zap.Logger
	Started    time.Time     // of the peer
	Stall      time.Duration // bounds the waits for partners of which nothing is known
	// Running ends when the peer has nothing left to wait for, Exchanges when those in
	// flight are broken off, and Closing is closed when it begins to close.
	Running, Exchanges context.Context
	Closing            <-chan struct{}
	// Spawn runs something on a goroutine that a closing peer waits for. It reports false
	// if it is too late for that.
	Spawn func(func()) bool
	// Ready tells whether there is a model to average.
	Ready func() bool
	// Hello asks a member whether it would have this peer.
	Hello func(context.Context, seam.PeerID) error
	// Malformed is told that what somebody has sent was no request.
	Malformed func(from seam.PeerID, reason wire.Reason, err error)
	// StepTime is about the time from one step of the trainer to the next.
	StepTime func() time.Duration
	Reports  Reports
}

// Reports are what the peer is told of its talks. All are called on many goroutines.
type Reports struct {
	// Event tells the averaging machine. It may wait for room.
	Event func(collective.Event)
	// Ask asks the machine about what a partner wants; the answer goes to verdict, which
	// has room for it. It reports false if the peer has stopped.
	Ask func(event collective.Event, x *Ongoing, verdict chan<- averaging.Action) bool
	// Doubts: Unresolved may have changed. Corrected: the membership has.
	Doubts, Corrected func()
	// Unfit: what the trainer has given to be sent cannot be.
	Unfit func(error)
	// Exchanged and Quarantined are the hooks of the same names; err is why an exchange broke off.
	Exchanged   func(done collective.Event, took time.Duration, err error)
	Quarantined func(partner seam.PeerID, term time.Duration, offence error)
}
