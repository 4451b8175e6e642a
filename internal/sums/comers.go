package sums

import (
	"fmt"
	"slices"
	"time"
)

// comer is a participant, as its coordinator knows it.
type comer struct {
	ID
	stage   Stage
	attempt uint64
	term    uint32
	placed  bool
	took    bool          // its place
	told    time.Duration // of its place
	heard   time.Duration

	least    int // it needs
	patience time.Duration
	tells    bool   // what follows; releases of before do not
	brings   uint32 // bytes, to a gathering
	progress uint32 // as wire.Sum tells it
	spoiler  ID     // who handed it a number that is not finite
}

// comers are the participants of a sum, by id.
type comers []comer

func (all comers) find(id ID) *comer {
	if i := slices.IndexFunc(all, func(c comer) bool { return c.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

func (all comers) ids() []ID {
	ids := make([]ID, len(all))
	for i, c := range all {
		ids[i] = c.ID
	}
	return ids
}

// standing finds between whom an attempt stands still, and by how much: where most could have come that
// has not; or one alone that has taken no place, or has all and does not say that it holds it.
func (all comers) standing(line []ID, op Op) (from, to ID, gap uint32) {
	var older ID
	full := uint32(stepsOf(op, len(line)) * stepTold)
	for i, id := range line {
		c, before := all.find(id), all.find(line[(i+len(line)-1)%len(line)])
		switch {
		case c == nil || before == nil || c.stage == Holding:
			continue
		case c.took && !c.tells:
			older = id
			continue
		case !c.took, c.progress >= full: // it has taken no place, or has all
			return id, "", full
		}
		ahead := min(before.progress+stepTold, full)
		if !before.tells {
			ahead = full
		}
		if ahead > c.progress && ahead-c.progress > gap {
			gap, from, to = ahead-c.progress, before.ID, id
		}
	}
	if from == "" {
		from = older
	}
	return from, to, gap
}

// spoilt is for people: who has handed on the first number that is not finite, as far as
// participants tell. Whoever tells so of another has passed it on itself.
func (all comers) spoilt() string {
	for _, c := range all {
		first := all.find(c.spoiler)
		if first != nil && first.spoiler == "" {
			return fmt.Sprintf(": %s says that %s brought such a number", c.ID.Short(), first.ID.Short())
		}
	}
	return ""
}

// patience is for how long those are waited for that have not come: the longest that two participants and
// more than half of all have, and of fewer no more than longestWait.
func (all comers) patience() time.Duration {
	each := make([]time.Duration, max(2-len(all), 0)) // of nobody
	for _, c := range all {
		each = append(each, c.patience)
	}
	slices.Sort(each)
	return max(each[(len(each)-1)/2], min(each[len(each)-1], longestWait))
}

// least is how many are needed, and who says so.
func (all comers) least() (n int, says ID) {
	n = 1
	for _, c := range all {
		if c.least > n {
			n, says = c.least, c.ID
		}
	}
	return n, says
}

// brings are the bytes that all bring to a gathering, and who brings most.
func (all comers) brings() (most comer, together uint64) {
	for _, c := range all {
		if together += uint64(c.brings); c.brings >= most.brings {
			most = c
		}
	}
	return most, together
}
