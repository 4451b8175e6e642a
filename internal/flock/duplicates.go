package flock

import "time"

// A restart is a new life, and a peer rarely has several in a minute. Two processes with
// one key supersede each other with every record.
const (
	twinLives  = 3
	twinWindow = time.Minute
	// twinReminder is the least time between two warnings about one member.
	twinReminder = time.Hour
)

// incarnations counts the new lives of a member in a while.
type incarnations struct {
	count  int
	since  time.Time // the window's begin
	many   time.Time // when there were last so many
	warned time.Time
}

// another counts a new life. It returns true if the member is a duplicate and a warning is due.
func (b *incarnations) another(now time.Time) bool {
	if now.Sub(b.since) > twinWindow {
		b.count, b.since = 0, now
	}
	if b.count++; b.count < twinLives {
		return false
	}
	b.many = now
	if !b.warned.IsZero() && now.Sub(b.warned) < twinReminder {
		return false
	}
	b.warned = now
	return true
}

// duplicate tells whether there were so many new lives lately that two processes must have one key.
func (b *incarnations) duplicate(now time.Time) bool {
	return !b.many.IsZero() && now.Sub(b.many) <= 2*twinWindow
}
