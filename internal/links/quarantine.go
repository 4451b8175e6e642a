package links

import "time"

// How long a peer that has sent what no honest one sends is kept away from: the
// first time quarantineFirst, twice as long each time after, up to quarantineMost.
// After as long again without an offence it begins anew.
const (
	quarantineFirst = 30 * time.Second
	quarantineMost  = time.Hour
)

// sentence is for how long a peer is kept away.
type sentence struct{ until, term time.Duration }

// next is the sentence for an offence now, after the one before.
func (s sentence) next(now, first, most time.Duration) sentence {
	term := first
	if before := s.weight(now); before > 0 {
		term = min(2*before, most)
	}
	return sentence{until: now + term, term: term}
}

// weight is the term as long as it counts for a further offence; 0 after that.
func (s sentence) weight(now time.Duration) time.Duration {
	if now-s.until < s.term {
		return s.term
	}
	return 0
}
