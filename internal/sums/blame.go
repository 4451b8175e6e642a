package sums

import (
	"cmp"
	"fmt"
	"math/bits"
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
	// slack is for what participants tell to come.
	slack = 5 * time.Second
	// outFor is for how long a member that was thrown out has no part in other sums either.
	outFor = 10 * time.Minute
	// orders is how many orders of participants are looked at.
	orders = 32
)

// blame is what a coordinator holds against participants.
type blame struct {
	between map[[2]ID]int // from whom to whom attempts failed, of one alone to nobody
	out     map[ID]ID     // thrown out, and beside whom
}

func (b *blame) thrown(id ID) bool {
	_, out := b.out[id]
	return out
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

// order gives ranks in the next attempt: by id, of numbers so that who comes before one hears no more than the
// first half of its own, and who comes after no more than the other, whoever coordinates. After a failure it is
// an order in which the fewest send to whom they have failed to.
func (b *blame) order(op Op, line []ID, attempt uint64) []ID {
	if half := 1 << bits.Len(uint(len(line))) / 4; op.private() {
		line = slices.Concat(line[:half], line[len(line)-half:], line[half:len(line)-half])
	}
	best, least := line, b.failures(op, line)
	for i := uint64(0); i < orders && least > 0; i++ {
		other := slices.Clone(line)
		rand.New(rand.NewPCG(attempt, i)).Shuffle(len(other), func(a, b int) { other[a], other[b] = other[b], other[a] })
		if n := b.failures(op, other); n < least {
			best, least = other, n
		}
	}
	return best
}

// failures counts those between whom something goes in an order.
func (b *blame) failures(op Op, line []ID) (n int) {
	for pair, counts := range b.between {
		from, to := slices.Index(line, pair[0]), slices.Index(line, pair[1])
		if from < 0 || to < 0 {
			continue
		}
		_, takes := schedule(op, to, len(line), 0)
		if slices.ContainsFunc(takes, func(s step) bool { return s.peer == from }) {
			n += counts
		}
	}
	return n
}

// stall gives up an attempt that stands still or takes too long.
func (l *lead) stall() {
	shy := slices.IndexFunc(l.line, func(id ID) bool { return !l.came[id].took })
	others := those(l.m.members, func(id ID) bool { return !l.m.excused[id] && l.came[id] == nil })
	if shy >= 0 && l.op.private() && len(l.came) == 2 && len(others) > 0 { // see part.secluded
		l.fault(codeOf(ErrTooFew), "of two that would hear each other's numbers "+l.line[shy].Short()+
			" does not begin, or is not told that these have no part: "+shorts(others))
		return
	}
	from, to := l.came.stalled(l.line, l.op)
	l.hold(from, to, "", stallCounts)
	l.regroup("nothing comes from " + from.Short() + " to " + cmp.Or(to, l.m.self).Short())
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
		beside := from
		if worst == from {
			beside = to
		}
		l.throw(worst, beside, fmt.Sprintf("in attempts that failed it stood %d times where they did, last beside %s", most, shorts([]ID{beside})))
	}
}

// throw goes on without a member for good. Of three with numbers two would be left, and either may lie: the sum ends.
func (l *lead) throw(id, beside ID, why string) {
	l.m.fact(Fact{What: Thrown, Sum: l.name, Who: []ID{id}, Why: why})
	l.blame.clear(id)
	l.blame.out[id], l.m.thrown[id] = beside, l.m.now
	if l.op.private() && len(l.came) == 3 && l.came[id] != nil && len(l.missing()) == 0 {
		l.refuses(2)
		return
	}
	l.m.tell(id, thrown(l.name))
	l.drop(id)
}

func thrown(sum string) *wire.Sum {
	return &wire.Sum{Kind: wire.SumFault, Name: sum, Op: codeOf(ErrUnreachable), Detail: "too many attempts have failed between it and others"}
}

// broken breaks off an attempt in which something cannot be sent, or is too much.
func (l *lead) broken(from ID, w *wire.Sum) {
	c, suspect := l.came[from], ID(w.Next)
	switch {
	case !l.running || w.Attempt != l.attempt || c == nil || !c.placed:
		return
	case int(w.Size) == len(l.line) && w.Size > 0:
		handed := suspect
		if suspect = l.line[w.Rank]; l.op == Gather && l.came[handed] != nil && handed != suspect {
			l.hold(handed, from, from, brokenCounts) // who passed it on may have made it longer
		}
	}
	if l.came[suspect] == nil {
		suspect = ""
	}
	l.hold(suspect, from, from, brokenCounts)
	l.regroup("by " + from.Short() + ", which hears nothing more of " + shorts([]ID{suspect}))
}

// refuses ends a sum that is not to be: a gathering of more than a participant makes room for, and
// numbers of two while one is here that was thrown out: each would hear the other's, and may not know of
// a third.
func (l *lead) refuses(left int) bool {
	if l.op == Gather {
		most, together := l.came.brings()
		if together > MaxGathered {
			l.fault(codeOf(ErrMismatch), fmt.Sprintf("all bring %d bytes, at most %d; %d of them %s", together, MaxGathered, most.brings, most.ID.Short()))
		}
		return together > MaxGathered
	}
	var failed []ID
	for _, id := range those(l.m.members, l.blame.thrown) {
		failed = append(failed, id)
		if beside := l.blame.out[id]; beside != "" {
			failed = append(failed, beside)
		}
	}
	if left != 2 || len(failed) == 0 || !l.op.private() {
		return false
	}
	l.fault(codeOf(ErrTooFew), "two are left, who would hear each other's numbers, since attempts have failed with "+shorts(failed))
	return true
}
