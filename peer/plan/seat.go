package plan

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the repair.
const (
	maxDepth  = 3         // jobs that are moved to make room for one
	maxLooks  = 1_000_000 // at places among a member's jobs, in one try
	fillSteps = 8         // in which a job gets its optional samples
)

// board is a schedule in the making.
type board struct {
	*problem
	end    float64   // when all has to
	limits []float64 // by job: when it has to end
	order  []int     // jobs that are poured
	seats  []seats   // by member
	latest []float64 // for insert
	looks  int       // that are left
	gaps   [][]gap   // by member: its free time
	spans  []span
}

// seats are the jobs that are seated at a member, in order, the end of the last at the earliest, and what all take.
type seats struct {
	jobs      []int
	end, busy float64
}

// span is samples of a job at a member, and gap the free time of one.
type span struct {
	job, member, samples int
	start, end           float64
}
type gap struct{ from, to float64 }

// try makes a schedule that ends by a time and misses no deadline by more than late, with optional samples in what is
// free if fill; nil if it finds none. Fits and evaluations get seats, those with the least slack or the longest first, as late
// as they may or as early; the samples of epochs are poured into the gaps. Where that fails, those of small epochs get
// seats too.
func try(p *problem, end, late float64, fill bool) *board {
	b := &board{problem: p, end: end}
	for _, j := range p.jobs {
		b.limits = append(b.limits, min(end, j.deadline+late))
	}
	for _, tight := range []bool{true, false} {
		if b.seatAll(tight) && (b.pourAll(false) || b.pourAll(true)) {
			if fill {
				b.fill()
			}
			return b
		}
	}
	return nil
}

// seatAll seats fits and evaluations, those with the least slack or the longest first.
func (b *board) seatAll(tight bool) bool {
	b.looks, b.seats, b.order = maxLooks, make([]seats, len(b.members)), nil
	for m, from := range b.from {
		b.seats[m].end = from
	}
	order, spare := []int(nil), make([]float64, len(b.jobs)) // at the quickest member, or if not tight, less time there
	for i, j := range b.jobs {
		if spare[i] = -j.quickest; tight {
			spare[i] += b.limits[i] - j.arrival
		}
		if j.whole() {
			order = append(order, i)
		} else {
			b.order = append(b.order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(spare[i], spare[j]) })
	return !slices.ContainsFunc(order, func(j int) bool { return !b.seat(j, maxDepth) })
}

// seat gives a job to a member; if none has room, to one that gives another away, to a depth.
func (b *board) seat(j, depth int) bool {
	if slices.ContainsFunc(b.jobs[j].prefer, func(m int) bool { return b.insert(m, b.seats[m], j) }) {
		return true
	}
	for n := 0; depth > 0 && n < len(b.jobs[j].prefer); n++ {
		m := b.jobs[j].prefer[n]
		before := b.seats[m]
		for i, moved := range before.jobs {
			if b.looks -= len(before.jobs); b.looks <= 0 {
				return false
			}
			if b.insert(m, b.seated(m, slices.Delete(slices.Clone(before.jobs), i, i+1)), j) && b.seat(moved, depth-1) {
				return true
			}
			b.seats[m] = before
		}
	}
	return false
}

// seated are these jobs at a member.
func (b *board) seated(m int, jobs []int) seats {
	s := seats{jobs, b.from[m], 0}
	for _, i := range jobs {
		took := b.jobs[i].alone(m)
		s.end, s.busy = max(s.end, b.jobs[i].arrival)+took, s.busy+took
	}
	return s
}

// insert seats a job at a member after those that are there, or as far back among them as all limits allow.
func (b *board) insert(m int, s seats, j int) bool {
	took, arrival := b.jobs[j].alone(m), b.jobs[j].arrival
	if !within(max(b.from[m], arrival)+took, b.limits[j]) || !within(b.from[m]+s.busy+took, b.end) {
		return false
	}
	if end := max(s.end, arrival) + took; within(end, b.limits[j]) {
		b.seats[m] = seats{append(s.jobs, j), end, s.busy + took}
		return true
	}
	if b.looks -= len(s.jobs); b.looks <= 0 {
		return false
	}
	latest := math.Inf(1) // that each of them may begin, so that it and those after it keep their limits
	b.latest = slices.Grow(b.latest[:0], len(s.jobs))[:len(s.jobs)]
	for at, i := range slices.Backward(s.jobs) {
		latest = min(latest, b.limits[i]+rounding(b.limits[i])) - b.jobs[i].alone(m)
		b.latest[at] = latest
	}
	place, end := -1, b.from[m]
	for at, i := range s.jobs {
		if own := max(end, arrival) + took; within(own, b.limits[j]) && max(own, b.jobs[i].arrival) <= b.latest[at] {
			place = at
		}
		end = max(end, b.jobs[i].arrival) + b.jobs[i].alone(m)
	}
	if place < 0 {
		return false
	}
	b.seats[m] = b.seated(m, slices.Insert(slices.Clone(s.jobs), place, j))
	return true
}

// settle gives the seats of a member their times, and makes the gaps between them.
func (b *board) settle(m int, early bool) {
	first, now, next, from := len(b.spans), b.from[m], math.Inf(1), b.from[m]
	for _, i := range b.seats[m].jobs {
		start := max(now, b.jobs[i].arrival)
		now = start + b.jobs[i].alone(m)
		b.spans = append(b.spans, span{i, m, b.jobs[i].left[m], start, now})
	}
	mine := b.spans[first:]
	for i := len(mine) - 1; i >= 0 && !early; i-- {
		shift := max(min(next, b.limits[mine[i].job])-mine[i].end, 0)
		mine[i].start, mine[i].end, next = mine[i].start+shift, mine[i].end+shift, mine[i].start+shift
	}
	for _, s := range append(mine[:len(mine):len(mine)], span{start: b.end}) {
		b.gaps[m] = append(b.gaps[m], gap{from, s.start})
		from = s.end
	}
}

// pourAll gives the samples of the other epochs to gaps, those with the earliest limits first.
func (b *board) pourAll(early bool) bool {
	b.gaps, b.spans = make([][]gap, len(b.members)), nil
	for m := range b.members {
		b.settle(m, early)
	}
	slices.SortStableFunc(b.order, func(i, j int) int {
		return cmp.Or(cmp.Compare(b.limits[i], b.limits[j]), cmp.Compare(b.jobs[j].Memory, b.jobs[i].Memory))
	})
	return !slices.ContainsFunc(b.order, func(j int) bool { return !b.pour(j, b.jobs[j].need) })
}

// pour gives so many samples to gaps, and tells whether it could.
func (b *board) pour(i, want int) bool {
	j := b.jobs[i]
	for _, m := range j.prefer {
		for k := 0; k < len(b.gaps[m]) && want > 0; k++ {
			g := &b.gaps[m][k]
			from := max(g.from, j.arrival)
			samples := int(min(float64(want), max(0, (min(g.to, b.limits[i])-from)/j.seconds[m]+1e-9)))
			if samples == 0 {
				continue
			}
			before, end := gap{g.from, from}, from+float64(float64(samples)*j.seconds[m])
			b.spans = append(b.spans, span{i, m, samples, from, end})
			if g.from, want = end, want-samples; before.from < from {
				b.gaps[m] = slices.Insert(b.gaps[m], k, before)
			}
		}
	}
	return want == 0
}

// fill gives optional samples to the gaps, in steps, first those that gain the most accuracy for their work.
func (b *board) fill() {
	type step struct {
		job, samples int
		gain         float64
	}
	var list []step
	for i, j := range b.jobs {
		for n, at := (j.most-j.need+fillSteps-1)/fillSteps, j.need; at < j.most; at += n {
			gain := j.curve.at(j.seen+float64(at+n)) - j.curve.at(j.seen+float64(at))
			list = append(list, step{i, min(n, j.most-at), gain / (float64(n) * j.cost())})
		}
	}
	slices.SortStableFunc(list, func(x, y step) int { return cmp.Compare(y.gain, x.gain) })
	for _, s := range list {
		b.pour(s.job, s.samples)
	}
}

// closed closes the gaps: each member does all that it has in the same order, and nothing later. It sorts by member.
func (b *board) closed() (out []span) {
	slices.SortFunc(b.spans, func(x, y span) int {
		return cmp.Or(x.member-y.member, cmp.Compare(x.start, y.start), x.job-y.job)
	})
	for _, s := range b.spans {
		last := &span{job: -1, end: b.from[s.member]}
		if n := len(out); n > 0 && out[n-1].member == s.member {
			last = &out[n-1]
		}
		seconds := float64(float64(s.samples) * b.jobs[s.job].seconds[s.member])
		if s.start = max(last.end, b.jobs[s.job].arrival); s.start == last.end && s.job == last.job {
			last.samples, last.end = last.samples+s.samples, last.end+seconds
			continue
		}
		s.end = s.start + seconds
		out = append(out, s)
	}
	return out
}

// within tells whether an end keeps a limit, but for rounding.
func within(end, limit float64) bool { return end <= limit+rounding(limit) }

// rounding is by how much it may make an end miss a limit.
func rounding(limit float64) float64 { return 1e-9 * max(1, math.Abs(limit)) }
