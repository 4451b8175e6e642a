package links

import "time"

// How long a peer that has sent what no honest one sends is kept away from: the
// first time quarantineFirst, twice as long each time after, up to quarantineMost.
// After as long again without an offence it begins anew.
const (
	quarantineFirst = 30 * time.Second
	quarantineMost  = time.Hour
)

// period is for how long a peer is kept away.
type period struct{ until, length time.Duration }

// next is the sentence for an offence now, after the one before.
func (s period) next(now, first, most time.Duration) period {
	length := first
	if before := s.weight(now); before > 0 {
		length = min(2*before, most)
	}
	return period{until: now + length, length: length}
}

// weight is the term as long as it counts for a further offence; 0 after that.
func (s period) weight(now time.Duration) time.Duration {
	if now-s.until < s.length {
		return s.length
	}
	return 0
}
