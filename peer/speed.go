package peer

import "time"

// speedWindow is over what time a peer's speed is compared with the others': words on
// their steps are up to a few announcements old.
const speedWindow = 5 * time.Second

// speed is how fast a trainer is, measured in what the flock's peers do in the mean.
type speed struct {
	since      time.Time
	own, total uint64 // steps then
	value      float64
}

// of takes the steps of the trainer and of all peers together, and returns the speed
// over the last window, 0 if there was none yet.
func (s *speed) of(own, total uint64, peers int, now time.Time) float64 {
	switch {
	case s.since.IsZero():
		s.since, s.own, s.total = now, own, total
	case now.Sub(s.since) >= speedWindow && total > s.total && own >= s.own:
		s.value = float64(own-s.own) * float64(peers) / float64(total-s.total)
		s.since, s.own, s.total = now, own, total
	}
	return s.value
}
