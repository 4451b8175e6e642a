package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds within which a plan holds.
const (
	speedChange = 1.0 / 3 // of a member's speed
	grace       = 0.1     // of the length of an assignment
	costDigits  = 10      // of a cost, so that no last bit decides
)

// Assignment is samples of a task that a member does from Start to End, on the plan's clock.
type Assignment struct {
	Task    string   `json:"task"`
	Member  string   `json:"member"`
	Start   float64  `json:"start"`
	End     float64  `json:"end"`
	Samples int      `json:"samples"`
	Ranges  [][2]int `json:"ranges"` // which: from the first number to before the second
}

// Late is a task that misses its deadline, and by how many seconds.
type Late struct {
	Task     string  `json:"task"`
	Deadline float64 `json:"deadline"`
	End      float64 `json:"end"`
	By       float64 `json:"by"`
}

// Plan is who does what.
type Plan struct {
	Start       float64      `json:"start"`            // on the plan's clock
	Makespan    float64      `json:"makespan"`         // seconds from Start to the end of all
	Bound       float64      `json:"bound"`            // seconds that any plan takes, deadlines aside
	Feasible    bool         `json:"feasible"`         // all is done by its deadline
	Late        []Late       `json:"late,omitempty"`   // what is not
	Nobody      []string     `json:"nobody,omitempty"` // tasks that are left out, as no member has the memory for them
	Accuracy    float64      `json:"accuracy"`         // expected, in the mean of the tasks with curves
	Resource    float64      `json:"resource"`         // busy share of the members, from 0 to 1
	Assignments []Assignment `json:"assignments"`      // by start, then by member
	State       State        `json:"-"`                // what it was made from
}

// figures are what a schedule comes to.
type figures struct {
	makespan, accuracy, resource, cost float64
	ends                               []float64 // of each job
}

func judge(p *problem, spans []span) figures {
	f, samples, busy := figures{ends: make([]float64, len(p.jobs))}, make([]int, len(p.jobs)), 0.0
	for _, s := range spans {
		f.ends[s.job], samples[s.job] = max(f.ends[s.job], s.end), samples[s.job]+s.samples
		f.makespan, busy = max(f.makespan, s.end-p.start), busy+(s.end-s.start)
	}
	f.price(p, busy, samples)
	return f
}

// price sets what follows from the makespan, the seconds for which members are busy, and the samples of each job.
func (f *figures) price(p *problem, busy float64, samples []int) {
	curves, w := 0.0, p.weights
	for i, j := range p.jobs {
		if j.curve != nil {
			f.accuracy, curves = f.accuracy+j.curve.at(j.seen+float64(max(samples[i], j.need))), curves+1
		}
	}
	f.accuracy, f.resource = f.accuracy/max(1, curves), busy/max(f.makespan*float64(len(p.members)), math.SmallestNonzeroFloat64)
	f.cost = rounded(float64(w.Time*f.makespan)-float64(w.Accuracy*f.accuracy)-float64(w.Resource*f.resource), costDigits)
}

// written is a schedule as a plan.
func written(p *problem, spans []span, s State, nobody []string) *Plan {
	f := judge(p, spans)
	out := &Plan{Start: p.start, Makespan: f.makespan, Bound: least(p), Nobody: nobody, Accuracy: f.accuracy, Resource: f.resource, Assignments: []Assignment{}, State: s}
	rest := make([][][2]int, len(p.jobs)) // samples that have no member yet
	for i, j := range p.jobs {
		if rest[i], _ = Remaining(j.Task, "", s.Done); !within(f.ends[i], j.deadline) {
			out.Late = append(out.Late, Late{j.Name, j.deadline, f.ends[i], f.ends[i] - j.deadline})
		}
	}
	out.Feasible = len(out.Late)+len(nobody) == 0
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	for _, span := range spans {
		t, a := p.jobs[span.job].Task, Assignment{Member: p.members[span.member].Name, Start: span.start, End: span.end, Samples: span.samples}
		if a.Task = t.Name; t.whole() {
			rest[span.job], _ = Remaining(t, a.Member, s.Done)
		}
		for r := &rest[span.job]; span.samples > 0; *r = (*r)[1:] {
			one := (*r)[0]
			if more := one[1] - one[0] - span.samples; more > 0 {
				one[1] -= more
				*r = slices.Insert(*r, 1, [2]int{one[1], one[1] + more})
			}
			a.Ranges, span.samples = append(a.Ranges, one), span.samples-(one[1]-one[0])
		}
		out.Assignments = append(out.Assignments, a)
	}
	return out
}

// Remaining are the samples of a task that are not done, in order, and how many; at one member, unless that is "".
func Remaining(t Task, member string, done []Part) (rest [][2]int, n int) {
	done = slices.DeleteFunc(slices.Clone(done), func(d Part) bool { return d.Task != t.Name || member != "" && d.Member != member })
	slices.SortFunc(done, func(a, b Part) int { return cmp.Compare(a.From, b.From) })
	from := 0
	for _, d := range append(done, Part{From: t.most()}) {
		if to := min(d.From, t.most()); to > from {
			rest, n = append(rest, [2]int{from, to}), n+to-from
		}
		from = max(from, d.To)
	}
	return rest, n
}

// Outdated tells in words why a state needs another plan, or "" while this one holds: until a member or a task comes or
// goes, a member's speed changes by a third, or an assignment is late. Both states are in the order of Merge.
func (p *Plan) Outdated(s State) string {
	if !slices.EqualFunc(s.Members, p.State.Members, func(a, b Member) bool { return a.Name == b.Name }) {
		return "a member has come or gone"
	}
	if !slices.EqualFunc(s.Tasks, p.State.Tasks, func(a, b Task) bool { return a.Name == b.Name }) {
		return "a task has come or gone"
	}
	for i, m := range s.Members {
		if was := p.State.Members[i].Speed; math.Abs(m.Speed-was) >= speedChange*was {
			return fmt.Sprintf("member %q has a speed of %g, and had %g", m.Name, m.Speed, was)
		}
	}
	for _, m := range p.Missed(s) {
		return fmt.Sprintf("member %q is late with task %q", m.Member, m.Task)
	}
	return ""
}

// Missed lists the ranges of assignments that should have ended, a tenth of their length ago, and have not: for
// State.Missed of the next plan.
func (p *Plan) Missed(s State) (list []Part) {
	for _, a := range p.Assignments {
		if s.Now < a.End+grace*(a.End-a.Start) {
			continue
		}
		t, member := p.State.Tasks[slices.IndexFunc(p.State.Tasks, func(t Task) bool { return t.Name == a.Task })], ""
		if t.whole() {
			member = a.Member
		}
		rest, _ := Remaining(t, member, s.Done)
		for _, r := range a.Ranges {
			if slices.ContainsFunc(rest, func(o [2]int) bool { return o[0] < r[1] && r[0] < o[1] }) {
				list = append(list, Part{a.Task, a.Member, r[0], r[1]})
			}
		}
	}
	return list
}
