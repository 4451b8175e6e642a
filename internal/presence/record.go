package presence

import (
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TickEvery is how often Publish should be called.
const TickEvery = flock.NewsTick

// ErrIdentity: this peer's key has signed a record with the highest incarnation there is,
// so that the others accept no later one.
var ErrIdentity = errors.New("this identity is used up: somebody has signed its last incarnation. Make a new key, and find out who has this one")

// record is this peer's own record.
type record struct {
	said      transport.Record // as last announced
	at        time.Time        // when that was
	announced bool             // members know this life
	continued bool             // this life has gone on under another incarnation
	repeats   int              // announcements still to repeat without a change
}

// Others wait for a member that begins to train. Some may only just have met it and have dropped its record, so
// the record is repeated a few times. Later changes are announced with its steps.
const (
	repeatTimes = 8
	repeatEvery = time.Second
)

// news tells whether the current record is worth an announcement; due tells whether one for
// so many more steps alone is. News of others must not cause an announcement, or announcements
// would cause each other without end.
func (r *record) news(now transport.Record, due func(after time.Duration, more uint64) bool, at time.Time) bool {
	was := r.said
	if was.Incarnation != now.Incarnation || was.Head != now.Head || was.Role != now.Role || was.Flags != now.Flags || was.Rows != now.Rows || was.Place != now.Place || was.Stage != now.Stage {
		return true
	}
	after := at.Sub(r.at)
	return was.Steps != now.Steps && due(after, now.Steps-was.Steps) || r.repeats > 0 && after >= repeatEvery
}

// announce signs and spreads the record. If the network knows its incarnation from an
// earlier life, the record gets the next one and is not announced yet; announce returns the
// highest known incarnation. If members know this life already, its steps count for both
// incarnations. An earlier life does not reply repeatedly, but another process with this
// key does.
func (r *record) announce(membership transport.Membership, own *flock.Flock, reached bool, now time.Time) (highest uint64, err error) {
	r.at, r.repeats = now, max(r.repeats-1, 0)
	err = membership.Announce(r.said)
	old, outlived := errors.AsType[*transport.OldIncarnationError](err)
	if !outlived {
		r.announced = r.announced || err == nil && reached
		return 0, err
	}
	if old.Highest >= transport.MaxIncarnation {
		return 0, ErrIdentity
	}
	r.said.Incarnation = old.Highest + 1
	own.SetIncarnation(r.said.Incarnation)
	if r.announced {
		r.continued = true
		r.said.Flags |= flock.Resumed
	}
	return old.Highest, nil
}
