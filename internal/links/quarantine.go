package links

import "time"

// Periods of quarantine for a peer that has sent what no honest peer sends: quarantineFirst
// the first time, twice as long each further time, up to quarantineMost. After as long
// again without a fault the count begins anew.
const (
	quarantineFirst = 30 * time.Second
	quarantineMost  = time.Hour
)

// period is the quarantine of one peer.
type period struct{ until, length time.Duration }

// next is the period for a fault now, after an earlier period.
func (s period) next(now, first, most time.Duration) period {
	length := first
	if before := s.weight(now); before > 0 {
		length = min(2*before, most)
	}
	return period{until: now + length, length: length}
}

// weight is the length as long as it counts for a further fault; 0 after that.
func (s period) weight(now time.Duration) time.Duration {
	if now-s.until < s.length {
		return s.length
	}
	return 0
}
