package plan

import (
	"cmp"
	"math"
	"slices"
)

const (
	maxTiers    = 16 // amounts of memory for which a bound is looked at
	boundDigits = 6
	safe        = 1 - 1e-5 // rounding makes no bound too high
)

// least is seconds from the start that any schedule takes: the optimum of the linear program in which jobs can be cut
// anywhere and be done at several members at once. That has a variable for each pair of a job and a member, and
// lp.Simplex takes minutes for 40,000. But where members differ in speed and in memory alone, its optimum is known: for
// some amount of memory, the jobs that need as much, over the speeds of the members that have it. Where links differ too
// it is a little less, and remains a bound. Each job alone is another.
func least(p *problem) float64 {
	latest, tiers := p.start, []float64{0}
	for _, j := range p.jobs {
		alone, starts, rates := math.Inf(1), make([]float64, len(p.members)), make([]float64, len(p.members))
		for _, k := range j.prefer {
			starts[k], rates[k] = max(p.from[k], j.arrival), 1/j.seconds[k]
			alone = min(alone, starts[k]+j.alone(k))
		}
		if !j.whole() {
			alone = filled(starts, rates, float64(j.need))
		}
		if j.need > 0 {
			latest, tiers = max(latest, alone), append(tiers, j.Memory)
		}
	}
	slices.Sort(tiers)
	tiers = slices.Compact(tiers)
	for _, memory := range tiers[:min(len(tiers), maxTiers)] {
		latest = max(latest, together(p, memory))
	}
	return max(0, rounded(safe*(latest-p.start), boundDigits))
}

// together is when all jobs that need so much memory can be done at the earliest. By the duality of linear programs no
// schedule is shorter, whatever a second of each member is taken to be worth, if a job counts for what it costs where
// it is cheapest. A second is worth the speed of a member that has the memory, and nothing at others.
func together(p *problem, memory float64) (end float64) {
	worth, starts, sum := make([]float64, len(p.members)), make([]float64, len(p.members)), 0.0
	for k, m := range p.members {
		if m.memory() >= memory {
			worth[k] = m.Speed
		}
	}
	jobs := slices.DeleteFunc(slices.Clone(p.jobs), func(j *job) bool { return j.Memory < memory })
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(b.arrival, a.arrival) })
	for n, j := range jobs {
		cheapest := math.Inf(1)
		for _, k := range j.prefer {
			cheapest = min(cheapest, j.alone(k)*worth[k])
		}
		if sum += cheapest; sum > 0 && (n+1 == len(jobs) || jobs[n+1].arrival < j.arrival) {
			for k, from := range p.from {
				starts[k] = max(from, j.arrival) // those that arrive from here on
			}
			end = max(end, filled(starts, worth, sum))
		}
	}
	return end
}

// filled is when so much is done by those that do rates per second from starts on.
func filled(starts, rates []float64, want float64) float64 {
	end := math.Inf(1)
	for range len(starts) + 1 { // each round but the last leaves out who would begin after the end
		sum, rate := want, 0.0
		for k, r := range rates {
			if r > 0 && starts[k] < end {
				sum, rate = sum+float64(r*starts[k]), rate+r
			}
		}
		if !(sum/rate < end) {
			break
		}
		end = sum / rate
	}
	return end
}
