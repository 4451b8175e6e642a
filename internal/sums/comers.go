package sums

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
)

// comer is a participant, as its coordinator knows it.
type comer struct {
	ID
	stage     Stage
	attempt   uint64
	term      uint32
	placed    bool
	rank      int           // of its place
	took      bool          // it has taken its place
	placeSent time.Duration // when its PLACE was sent
	received  time.Duration
	moved     time.Duration // when it last reported progress

	least    int // participants that it needs
	timeout  time.Duration
	brings   uint32 // bytes in a gathering
	progress uint32 // as in wire.Sum
	spoiler  ID     // the member that sent it a number that is not finite
	value    float64
	brought
}

// comers are the participants of a sum.
type comers map[ID]*comer

// ids are all ids, sorted, since a map has no order.
func (all comers) ids() []ID { return slices.Sorted(maps.Keys(all)) }

// stalled finds the two members between which an attempt stands still: the receiver that has waited longest for
// a sender that has everything it needs. Or it finds a single member that has not taken its place, or has
// everything and does not report that it holds the sum.
func (all comers) stalled(line []ID, op Op) (from, to ID) {
	var last time.Duration // of progress reported by either
	for rank, id := range line {
		c, done := all[id], int(all[id].progress/progressStep)
		_, takes := schedule(op, rank, len(line), 0)
		if c.stage == Holding {
			continue
		}
		if !c.took || done >= len(takes) {
			return id, ""
		}
		before := all[line[takes[done].peer]]
		hands, _ := schedule(op, before.rank, len(line), 0)
		ready := before.stage == Holding || int(before.progress/progressStep) >= hands[takes[done].index].after
		if moved := max(c.moved, before.moved); ready && (from == "" || moved < last) {
			from, to, last = before.ID, id, moved
		}
	}
	return from, to
}

// spoilt names, for people, the member that sent the first number that is not finite, according
// to the participants. A participant that reports another member has passed the number on itself.
func (all comers) spoilt() string {
	for _, id := range all.ids() {
		if first := all[all[id].spoiler]; first != nil && first.spoiler == "" {
			return fmt.Sprintf(": %s says that %s brought such a number", id.Short(), first.ID.Short())
		}
	}
	return ""
}

// timeout is how long the sum waits for members that have not come: the longest timeout that at least
// two participants, and more than half of all, ask for; longer ones count up to longestWait.
func (all comers) timeout() time.Duration {
	each := make([]time.Duration, max(2-len(all), 0)) // zeros for missing participants
	for _, c := range all {
		each = append(each, c.timeout)
	}
	slices.Sort(each)
	return max(each[(len(each)-1)/2], min(each[len(each)-1], longestWait))
}

// least is how many participants are needed, and which participant demands that, "" if it follows from the operation.
func (all comers) least(op Op) (n int, says ID) {
	if n = 1; op.masked() {
		n = mask.Least
	}
	for id, c := range all {
		if c.least > n || c.least == n && id < says {
			n, says = c.least, id
		}
	}
	return n, says
}

// value is the least value of the participants.
func (all comers) value() float64 {
	least := math.Inf(1)
	for _, c := range all {
		least = min(least, c.value)
	}
	return least
}

// brings are the bytes of a gathering of all participants, and the participant with the most.
func (all comers) brings() (most comer, together uint64) {
	for id, c := range all {
		if together += uint64(c.brings); c.brings > most.brings || c.brings == most.brings && id > most.ID {
			most = *c
		}
	}
	return most, together
}
