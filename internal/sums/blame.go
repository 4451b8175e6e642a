package sums

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// brokenCounts and stallCounts are what an attempt that fails counts against the two between whom it
	// did: streams break soon and may hold the next time, a standstill costs all a minute. Nobody else
	// can tell which of both is at fault, so others stand beside each in the next attempt, and who has
	// come to maxBroken first is thrown out.
	brokenCounts = 1
	stallCounts  = 2
	// slack is by what a participant's word on a standstill may come after the standstill.
	slack = 5 * time.Second
	// outFor is for how long a member that was thrown out has no part in other sums either.
	outFor = 10 * time.Minute
	// orders is how many orders of a ring are looked at.
	orders = 8
)

// blame is what a coordinator holds against participants.
type blame struct {
	between map[[2]ID]int // from whom to whom attempts failed, of one alone to nobody
	out     map[ID]bool   // thrown out
}

// of is what counts against a member.
func (b *blame) of(id ID) (n int) {
	for pair, counts := range b.between {
		if pair[0] == id || pair[1] == id {
			n += counts
		}
	}
	return n
}

// clear forgets what was between a member and others: it is gone, or was at fault.
func (b *blame) clear(id ID) {
	for pair := range b.between {
		if pair[0] == id || pair[1] == id {
			delete(b.between, pair)
		}
	}
}

// order is the ring of the next attempt: by id, and after a failure one in which the fewest stand
// where attempts have failed.
func (b *blame) order(line []ID, attempt uint64) []ID {
	best, least := line, b.failures(line)
	for i := uint64(0); i < orders && least > 0; i++ {
		other := slices.Clone(line)
		rand.New(rand.NewPCG(attempt, i)).Shuffle(len(other), func(a, b int) { other[a], other[b] = other[b], other[a] })
		if n := b.failures(other); n < least {
			best, least = other, n
		}
	}
	return best
}

// failures counts those between neighbours in a ring.
func (b *blame) failures(line []ID) (n int) {
	for i, id := range line {
		n += b.between[[2]ID{id, line[(i+1)%len(line)]}]
	}
	return n
}

// stall gives up an attempt that stands still or takes too long, at the word of one of those in it or
// of nobody.
func (l *lead) stall(says ID) {
	shy := slices.IndexFunc(l.came, func(c comer) bool { return c.placed && !c.took })
	others := slices.DeleteFunc(slices.Clone(l.m.members), func(id ID) bool { return l.m.asleep[id] || l.came.find(id) != nil })
	if shy >= 0 && Op(l.op) != Gather && len(l.came) == 2 && len(others) > 0 { // see part.apart
		l.fault(codeOf(ErrTooFew), "of two that would hear each other's numbers "+l.came[shy].Short()+
			" does not begin, or is not told that these have no part: "+shorts(others))
		return
	}
	from, to, gap := l.came.standing(l.line, Op(l.op))
	if says != "" && l.m.now-l.moved < standstill/2 && gap <= stepTold*3/2 {
		from, to = says, "" // all move alike
	}
	l.hold(from, to, "", stallCounts)
	l.regroup("nothing comes to " + cmp.Or(to, from).Short())
}

// hold holds a failure against those between whom it was, and throws out who has had too many: the one
// that says so, if both have.
func (l *lead) hold(from, to, says ID, counts int) {
	l.blame.between[[2]ID{from, to}] += counts
	var worst ID
	most := maxBroken - 1
	for _, id := range []ID{from, to} {
		if n := l.blame.of(id); id != l.m.self && id != "" && (n > most || n == most && id == says && worst != "") {
			worst, most = id, n
		}
	}
	if worst != "" {
		l.throw(worst, fmt.Sprintf("in attempts that failed it stood %d times where they did", most))
	}
}

// throw goes on without a member for good.
func (l *lead) throw(id ID, why string) {
	l.m.fact(Fact{What: Thrown, Sum: l.name, Who: []ID{id}, Why: why})
	l.blame.clear(id)
	l.blame.out[id], l.m.thrown[id] = true, l.m.now
	l.m.tell(id, thrown(l.name))
	l.drop(id)
}

func thrown(sum string) *wire.Sum {
	return &wire.Sum{Kind: wire.SumFault, Name: sum, Op: codeOf(ErrUnreachable), Detail: "too many attempts have failed between it and others"}
}

// broken breaks off an attempt in which something cannot be sent, does not come, or is too much.
func (l *lead) broken(from ID, w *wire.Sum) {
	c, suspect := l.came.find(from), ID(w.Next)
	switch {
	case !l.running || w.Attempt != l.attempt || c == nil || !c.placed:
		return
	case suspect == "" && l.m.now-l.began >= standstill-slack:
		l.stall(from)
		return
	case int(w.Size) == len(l.line) && w.Size > 0:
		suspect = l.line[w.Rank]
	}
	if l.came.find(suspect) == nil {
		suspect = ""
	}
	l.hold(suspect, from, from, brokenCounts)
	l.regroup("by " + from.Short() + ", which hears nothing more of " + shorts([]ID{suspect}))
}

// refuses ends a sum that is not to be: a gathering of more than a participant makes room for, and
// numbers of two while one is here that was thrown out: each would hear the other's, and may not know of
// a third.
func (l *lead) refuses() bool {
	if Op(l.op) == Gather {
		most, together := l.came.brings()
		if together > MaxGathered {
			l.fault(codeOf(ErrMismatch), fmt.Sprintf("all bring %d bytes, at most %d; %d of them %s", together, MaxGathered, most.brings, most.ID.Short()))
		}
		return together > MaxGathered
	}
	var out []ID
	for _, id := range l.m.members {
		if l.blame.out[id] {
			out = append(out, id)
		}
	}
	if len(l.came) != 2 || len(out) == 0 {
		return false
	}
	l.fault(codeOf(ErrTooFew), "two are left, who would hear each other's numbers, without "+shorts(out)+", with which attempts have failed")
	return true
}
