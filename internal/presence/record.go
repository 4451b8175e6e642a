package presence

import (
	"errors"
	"time"

	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TickEvery is how often Publish should be called.
const TickEvery = flock.NewsTick

// ErrIdentity: this peer's key has signed a record with the highest incarnation
// there is, so that the others believe no later one.
var ErrIdentity = errors.New("this identity is used up: somebody has signed its last incarnation. Make a new key, and find out who has this one")

// record is what this peer says of itself.
type record struct {
	said      transport.Record // as last announced
	at        time.Time        // when that was
	announced bool             // members have heard of this life
	continued bool             // it has gone on under another incarnation
	repeats   int              // how often it is to be said though nothing is new
}

// A member that begins to train is waited for by others, of whom some have only just met it, and may not have let
// its word pass: it is said a few times. What it does from then on is said with its steps.
const (
	repeatTimes = 8
	repeatEvery = time.Second
)

// news tells whether what the record would say is worth an announcement, where one of steps
// alone may be due. News of others, which come with their steps, are no reason for one of
// one's own: it would be theirs, and so on.
func (r *record) news(now transport.Record, due func(after time.Duration) bool, at time.Time) bool {
	was := r.said
	if was.Incarnation != now.Incarnation || was.Head != now.Head || was.Role != now.Role || was.Flags != now.Flags {
		return true
	}
	after := at.Sub(r.at)
	return was.Steps != now.Steps && due(after) || r.repeats > 0 && after >= repeatEvery
}

// announce signs and spreads the record. If the network knows its incarnation from an
// earlier life, it is given the next one, and has yet to be announced: the highest that
// is known is returned. If members have heard of this life, its steps count as those of
// both incarnations; and an earlier life does not answer to it again and again, as another
// process with this key does.
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
