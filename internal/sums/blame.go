package sums

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/mask"
	"github.com/seed-97356399/murmuration/internal/wire"
)

const (
	// brokenCounts and stallCounts are the counts that a failed attempt adds to the two members between
	// which it failed: a broken stream is quick and may work the next time, a standstill costs all
	// members a minute. Nobody else can tell which of the two is at fault, so both get other partners in
	// the next attempt, and the one that first reaches maxBroken is thrown out.
	brokenCounts = 1
	stallCounts  = 2
	// slack allows for the travel time of participants' messages.
	slack = 5 * time.Second
	// outFor is how long a member that was thrown out is kept out of other sums too.
	outFor = 10 * time.Minute
	// orders is how many orders of participants are tried.
	orders = 32
)

// blame is a coordinator's record of failures between participants.
type blame struct {
	between map[[2]ID]int // failures by sender and receiver; "" as receiver for those of one member alone
	out     map[ID]ID     // members thrown out, and the other member of the failure
}

func (b *blame) thrown(id ID) bool {
	_, out := b.out[id]
	return out
}

// of is the count of a member.
func (b *blame) of(id ID) (n int) {
	for pair, counts := range b.between {
		if pair[0] == id || pair[1] == id {
			n += counts
		}
	}
	return n
}

// clear removes the counts of a member and its partners: it is gone, or was at fault.
func (b *blame) clear(id ID) {
	maps.DeleteFunc(b.between, func(pair [2]ID, _ int) bool { return pair[0] == id || pair[1] == id })
}

// order gives the ranks in the next attempt: by id. For numbers this means that a member's partners before it
// get no more than the first half of its numbers, and those after it no more than the second half, whoever
// coordinates. After a failure it is an order with the fewest pairs that have failed before.
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

// failures counts earlier failures between members that are partners in an order.
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

// hold adds a failure to the counts of both members, and throws out the one that has reached the
// limit; if both have, the one that reported it.
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

// throw removes a member permanently. If only two members with numbers would be left, the sum ends, since either may
// be the liar.
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

// broken breaks off an attempt in which data cannot be sent, or is too large. Once all participants hold the sum and
// reveal the seeds of their masks, no data is missing: then neither a member that reports a broken stream nor its
// partner is at fault.
func (l *lead) broken(from ID, w *wire.Sum) {
	c, suspect := l.came[from], ID(w.Next)
	switch {
	case !l.running || l.opens > 0 || w.Attempt != l.attempt || c == nil || !c.placed:
		return
	case int(w.Size) == len(l.line) && w.Size > 0:
		handed := suspect
		if suspect = l.line[w.Rank]; l.op == Gather && l.came[handed] != nil && handed != suspect {
			l.hold(handed, from, from, brokenCounts) // the member that passed it on may have made it longer
		}
	}
	if l.came[suspect] == nil {
		suspect = ""
	}
	l.hold(suspect, from, from, brokenCounts)
	l.regroup("by " + from.Short() + ", which hears nothing more of " + shorts([]ID{suspect}))
}

// refuses ends a sum that must not be made: a gathering that is larger than a participant's limit; or
// numbers of only two participants while a member that was thrown out is still present: each of the two
// would see the other's numbers, and may not know of a third.
func (l *lead) refuses(left int) bool {
	if l.op == Gather {
		most, together := l.came.brings()
		if together > MaxGathered {
			l.fault(codeOf(ErrMismatch), fmt.Sprintf("all bring %d bytes, at most %d; %d of them %s", together, MaxGathered, most.brings, most.ID.Short()))
		}
		return together > MaxGathered
	}
	if l.op.masked() && left > mask.Most {
		l.fault(codeOf(ErrMismatch), fmt.Sprintf("%d have come to a sum with masks, at most %d", left, mask.Most))
		return true
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
