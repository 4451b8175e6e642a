package sums

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// comer is a participant, as its coordinator knows it.
type comer struct {
	ID
	stage     Stage
	attempt   uint64
	term      uint32
	placed    bool
	rank      int           // of its place
	took      bool          // its place
	placeSent time.Duration // of its place
	received  time.Duration
	moved     time.Duration // when it told last that more has come to it

	least    int // it needs
	timeout  time.Duration
	brings   uint32 // bytes, to a gathering
	progress uint32 // as wire.Sum tells it
	spoiler  ID     // who handed it a number that is not finite
	value    float64
}

// comers are the participants of a sum.
type comers map[ID]*comer

// ids are all, in order: a map has none.
func (all comers) ids() []ID { return slices.Sorted(maps.Keys(all)) }

// stalled finds between whom an attempt stands still: to whom nothing has come for longest from one that has all
// that it needs to send it; or one alone that has taken no place, or has all and does not say that it
// holds it.
func (all comers) stalled(line []ID, op Op) (from, to ID) {
	var last time.Duration // that either was heard to have more
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

// spoilt is for people: who has handed on the first number that is not finite, as far as
// participants tell. Whoever tells so of another has passed it on itself.
func (all comers) spoilt() string {
	for _, id := range all.ids() {
		if first := all[all[id].spoiler]; first != nil && first.spoiler == "" {
			return fmt.Sprintf(": %s says that %s brought such a number", id.Short(), first.ID.Short())
		}
	}
	return ""
}

// timeout is for how long those are waited for that have not come: the longest that two participants and
// more than half of all have, and of fewer no more than longestWait.
func (all comers) timeout() time.Duration {
	each := make([]time.Duration, max(2-len(all), 0)) // of nobody
	for _, c := range all {
		each = append(each, c.timeout)
	}
	slices.Sort(each)
	return max(each[(len(each)-1)/2], min(each[len(each)-1], longestWait))
}

// least is how many are needed, and who says so.
func (all comers) least() (n int, says ID) {
	n = 1
	for id, c := range all {
		if c.least > n || c.least == n && id < says {
			n, says = c.least, id
		}
	}
	return n, says
}

// value is the least that participants bring.
func (all comers) value() float64 {
	least := math.Inf(1)
	for _, c := range all {
		least = min(least, c.value)
	}
	return least
}

// brings are the bytes that all bring to a gathering, and who brings most.
func (all comers) brings() (most comer, together uint64) {
	for id, c := range all {
		if together += uint64(c.brings); c.brings > most.brings || c.brings == most.brings && id > most.ID {
			most = *c
		}
	}
	return most, together
}
