package plan

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of the search.
const (
	closeEnough = 0.002 // of a time, below which it is not halved
	ladder      = 16    // longer times that are tried where accuracy or resource count
	longer      = 2.0   // times the shortest that the longest of them is at least
	longest     = 16.0  // and at most
)

// job is what is left of a task, in numbers.
type job struct {
	Task
	need, most              int // samples to do, and that may be done
	arrival, deadline, seen float64
	curve                   *curve
	left                    []int     // by member: samples if it alone does what is needed
	seconds                 []float64 // by member: for a sample; infinite if it cannot
	prefer                  []int     // the members that can, in the order in which they are tried
	quickest                float64   // seconds at the member that does all that is needed the fastest
}

// alone is how long a member takes for all that is needed.
func (j *job) alone(member int) float64 { return float64(j.left[member]) * j.seconds[member] }

func (j *job) slower(a, b int) int { return cmp.Or(cmp.Compare(j.seconds[b], j.seconds[a]), a-b) }

// problem is a state in numbers.
type problem struct {
	jobs    []*job
	members []Member
	from    []float64 // when each is free
	weights Weights
	start   float64
}

// Make plans what is left to do from Now on; to plan anew, call it with a newer state. It is no error that deadlines
// cannot be kept: then the worst is missed by the least that was found, and Late lists all. Errors are ErrInvalid.
func Make(s State) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p, nobody := newProblem(s)
	return written(p, p.improve(p.search()), s, nobody), nil
}

// newProblem puts a valid state in numbers. It leaves out what nobody can do.
func newProblem(s State) (p *problem, nobody []string) {
	p = &problem{members: s.Members, weights: cmp.Or(s.Weights, Weights{Time: 1}), start: s.Now}
	for _, m := range s.Members {
		p.from = append(p.from, max(m.From, s.Now))
	}
	for _, t := range s.Tasks {
		j := &job{Task: t, arrival: max(t.Arrival, s.Now), deadline: cmp.Or(t.Deadline, math.Inf(1)), curve: fitCurve(t.Curve)}
		if !j.count(s) {
			continue
		}
		if j.rank(s); len(j.prefer) > 0 {
			p.jobs = append(p.jobs, j)
		} else {
			nobody = append(nobody, t.Name)
		}
	}
	return p, nobody
}

// count sets what is left to do, and tells whether anything is.
func (j *job) count(s State) bool {
	done := slices.DeleteFunc(slices.Clone(s.Done), func(d Part) bool { return d.Task != j.Name })
	if j.most = j.Samples; !j.whole() {
		_, j.most = Remaining(j.Task, "", done)
	}
	past := j.Task.most() - j.most
	j.need, j.seen = max(j.Samples-past, 0), float64(j.Seen+past)
	j.left = slices.Repeat([]int{j.need}, len(s.Members))
	for k, m := range s.Members {
		if !j.whole() || len(done) == 0 {
			break
		}
		if _, j.left[k] = Remaining(j.Task, m.Name, done); j.left[k] == 0 {
			return false
		}
	}
	return j.most > 0
}

// rank lists who can do a job, without those that missed it if others can. First come those for which its bytes cost
// the least beside its work; of these, those with the least memory and then the slowest, so that the others are free
// for what only they can do.
func (j *job) rank(s State) {
	for k, m := range s.Members {
		if j.seconds = append(j.seconds, m.seconds(j.Task)); !math.IsInf(j.seconds[k], 1) {
			j.prefer = append(j.prefer, k)
		}
	}
	if others := slices.DeleteFunc(slices.Clone(j.prefer), func(k int) bool {
		return slices.ContainsFunc(s.Missed, func(p Part) bool { return p.Task == j.Name && p.Member == s.Members[k].Name })
	}); len(others) > 0 {
		j.prefer = others
	}
	prices := make([]float32, len(s.Members)) // rounded: alike is equal
	for _, k := range j.prefer {
		prices[k] = float32(j.seconds[k] * s.Members[k].Speed)
	}
	slices.SortFunc(j.prefer, func(a, b int) int {
		return cmp.Or(cmp.Compare(prices[a], prices[b]), cmp.Compare(s.Members[a].memory(), s.Members[b].memory()), j.slower(a, b))
	})
	j.quickest = math.Inf(1)
	for _, k := range j.prefer {
		j.quickest = min(j.quickest, j.alone(k))
	}
}

// search finds the shortest time in which deadlines are kept, or missed by the least, and where more than time counts,
// the best of longer ones.
func (p *problem) search() []span {
	late, far := 0.0, slices.Max(p.from) // far is when all is done, however badly
	for _, j := range p.jobs {
		far = max(far, j.arrival) + float64(2*float64(j.need+1)*j.seconds[slices.MinFunc(j.prefer, j.slower)])
	}
	far += rounding(far) // where the clock is far beyond what a job takes, adding that changes nothing
	if try(p, far, late, false) == nil {
		late, _ = narrow(0, 2*far, func(late float64) *board { return try(p, far, late, false) })
	}
	length, shortest := narrow(least(p), far-p.start, func(length float64) *board { return try(p, p.start+length, late, false) })
	best := shortest.closed()
	if p.weights.Accuracy == 0 && p.weights.Resource == 0 {
		return best
	}
	lowest := judge(p, best).cost
	slow, factor := *p, longer // slow members first makes more of them busy
	slow.jobs = nil
	for _, j := range p.jobs {
		slower := *j
		slower.prefer = slices.SortedFunc(slices.Values(j.prefer), j.slower)
		slow.jobs, factor = append(slow.jobs, &slower), min(longest, max(factor, float64(j.most)/float64(max(j.need, 1))))
	}
	for n := range 4 * (ladder + 1) {
		q, end := p, p.start+float64(length*rounded(math.Pow(factor, float64(n/4)/ladder), curveDigits))
		if n%2 == 1 {
			q = &slow
		}
		if s := try(q, end, late, n%4 > 1); s != nil {
			spans := s.closed()
			if cost := judge(p, spans).cost; cost < lowest {
				best, lowest = spans, cost
			}
		}
	}
	return best
}

// narrow finds the least value for which something can be done, by halves; it can be done for the high one, and for all
// above one for which it can. It begins where it is likely, at twice the low value: to halve from high on took most of the time.
func narrow(low, high float64, do func(float64) *board) (value float64, found *board) {
	if found = do(low); found != nil {
		return low, found
	}
	halves := []float64{high}
	for value = high; low > 0 && value-low > 2*low; halves = append(halves, value) {
		value = low + (value-low)/2
	}
	for n := len(halves) - 1; n >= 0 && found == nil; n-- {
		if value, found = halves[n], do(halves[n]); found == nil && n > 0 {
			low = value
		}
	}
	for value-low > closeEnough*value {
		middle := low + (value-low)/2
		if s := do(middle); s != nil {
			value, found = middle, s
		} else {
			low = middle
		}
	}
	return value, found
}
