package plan

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// instance is a random state of up to five tasks and five members.
func instance(r *rand.Rand, weights bool) State {
	var s State
	for i := range 1 + r.IntN(5) {
		m := Member{Name: fmt.Sprintf("m%d", i), Speed: 1 + float64(r.IntN(8))}
		if r.IntN(4) == 0 {
			m.Memory = float64(1 + r.IntN(3))
		}
		if r.IntN(3) == 0 {
			m.Link = 2 + float64(r.IntN(8))
		}
		s.Members = append(s.Members, m)
	}
	s.Members[0].Memory = 0
	epochs := 0
	for i := range 1 + r.IntN(5) {
		t := Task{Name: fmt.Sprintf("t%d", i), Kind: []Kind{Fit, Evaluation, Epoch}[r.IntN(3)], Samples: 1 + r.IntN(4), Cost: float64(1 + r.IntN(6)), Bytes: float64(r.IntN(3))}
		if t.Kind == Epoch {
			if epochs++; epochs > 2 {
				t.Kind = Fit
			}
		}
		if r.IntN(4) == 0 {
			t.Memory = float64(1 + r.IntN(3))
		}
		if r.IntN(3) == 0 {
			t.Arrival = float64(r.IntN(4))
		}
		if r.IntN(3) == 0 {
			t.Deadline = t.Arrival + 1 + float64(t.Samples)*t.Cost*(0.1+r.Float64())
		}
		if weights && t.Kind == Epoch {
			t.Curve = []Point{{1, 0.2}, {2, 0.5}, {4, 0.7}}
			t.Most = t.Samples + r.IntN(3)
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

// brute is the least cost over all ways to give samples to members, each in the best of all orders, and the least
// seconds by which the worst deadline is missed.
func brute(s State) (cost, late float64) {
	p, _ := newProblem(s)
	n, m := len(p.jobs), len(p.members)
	type option struct{ late, end float64 }
	memo := make([]map[[5]int][]option, m) // by member and samples of each job: the ends and latenesses no other order betters
	for k := range memo {
		memo[k] = map[[5]int][]option{}
	}
	options := func(k int, counts [5]int) []option {
		if o, ok := memo[k][counts]; ok {
			return o
		}
		var out []option
		var visit func(now, late float64, left [5]int)
		visit = func(now, late float64, left [5]int) {
			over := true
			for j := range n {
				if left[j] == 0 {
					continue
				}
				over = false
				next := left
				next[j] = 0
				end := max(now, p.jobs[j].arrival) + float64(left[j])*p.jobs[j].seconds[k]
				visit(end, max(late, end-p.jobs[j].deadline), next)
			}
			if over {
				for _, o := range out {
					if o.late <= late && o.end <= now {
						return
					}
				}
				out = append(out, option{late, now})
			}
		}
		visit(p.from[k], 0, counts)
		memo[k][counts] = out
		return out
	}
	leastLate, leastCost := math.Inf(1), math.Inf(1)
	var counts [5][5]int // by member and job
	var give func(j, k, left int)
	judge := func() {
		late := 0.0
		for k := range m {
			best := math.Inf(1)
			for _, o := range options(k, counts[k]) {
				best = min(best, o.late)
			}
			late = max(late, best)
		}
		if late > leastLate+1e-9 {
			return
		}
		if late < leastLate-1e-9 {
			leastLate, leastCost = late, math.Inf(1)
		}
		end, sc := p.start, []span(nil)
		for k := range m {
			best := math.Inf(1)
			for _, o := range options(k, counts[k]) {
				if o.late <= leastLate+1e-9 {
					best = min(best, o.end)
				}
			}
			if best == math.Inf(1) {
				return
			}
			end = max(end, best)
		}
		for k := range m {
			for j := range n {
				if c := counts[k][j]; c > 0 {
					sc = append(sc, span{j, k, c, end - float64(c)*p.jobs[j].seconds[k], end})
				}
			}
		}
		leastCost = min(leastCost, judge(p, sc).cost)
	}
	give = func(j, k, left int) {
		if j == n {
			judge()
			return
		}
		job := p.jobs[j]
		if k == m {
			if left <= job.most-job.need {
				next := j + 1
				if next == n {
					judge()
				} else {
					give(next, 0, p.jobs[next].most)
				}
			}
			return
		}
		for c := 0; c <= left; c++ {
			if c > 0 && math.IsInf(p.jobs[j].seconds[k], 1) {
				break
			}
			if job.whole() && c != 0 && c != job.need || job.whole() && c > 0 && left < job.need {
				continue
			}
			counts[k][j] = c
			give(j, k+1, left-c)
		}
		counts[k][j] = 0
	}
	give(0, 0, p.jobs[0].most)
	return leastCost, leastLate
}

var all = flag.Bool("all", false, "hold 1,000 plans against brute force, and not 25")

// Plans of up to five tasks and five members are hardly worse than the best of all, whatever counts, and never later
// where a deadline has to be missed. The brute force gives a member all samples of a task at once: a plan that cuts them
// in two can be better.
func TestAgainstBruteForce(t *testing.T) {
	n := 25
	if *all {
		n = 1000
	}
	for _, weights := range []Weights{{}, {Time: 1, Accuracy: 5}, {Time: 1, Resource: 5}, {Time: 1, Accuracy: 20, Resource: 20}} {
		var sum, worst float64
		late, better := 0, 0
		for seed := range n {
			s := instance(rand.New(rand.NewPCG(uint64(seed), 7)), weights != Weights{})
			s.Weights = weights
			best, least := brute(s)
			p, err := Make(s)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, s, p)
			missed := 0.0
			for _, l := range p.Late {
				missed = max(missed, l.By)
			}
			if missed > least*1.02+1e-6 {
				t.Errorf("seed %d: a deadline is missed by %v, and could be by %v", seed, missed, least)
			}
			if least > 1e-9 {
				late++
			}
			w := cmp.Or(weights, Weights{Time: 1})
			cost := w.Time*p.Makespan - w.Accuracy*p.Accuracy - w.Resource*p.Resource
			gap := (cost - best) / (math.Abs(best) + w.Accuracy + w.Resource) // the goal may be about 0: beside what could be had
			if gap < -1e-9 {
				better++
			}
			if sum += max(gap, 0); gap > worst {
				worst = gap
				t.Logf("seed %d: %v, and the best is %v", seed, cost, best)
			}
		}
		t.Logf("%v: %d instances, of which %d cannot keep a deadline: %.2f %% above the best in the mean, %.1f %% at worst; %d are better than without cutting",
			weights, n, late, 100*sum/float64(n), 100*worst, better)
		if sum/float64(n) > 0.02 || worst > 0.1 {
			t.Errorf("%v: %.4f above the best in the mean, %.4f at worst", weights, sum/float64(n), worst)
		}
	}
}
