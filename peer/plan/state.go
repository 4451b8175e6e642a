package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// Kind is a kind of task. One member does a Fit or an Evaluation from beginning to end; the samples of an Epoch, a pass
// over a shard, can be divided.
type Kind string

// The kinds of tasks.
const (
	Fit        Kind = "fit"
	Epoch      Kind = "epoch"
	Evaluation Kind = "evaluation"
)

// Bounds of a State: of pairs of a task and a member, of Done and Missed, of a number of samples, of a name, of numbers
// that are no counts, and the least of those that are divided by.
const (
	maxPairs, maxParts, maxSamples, maxName = 4 << 20, 100_000, min(1<<48, math.MaxInt/4), 256
	maxAmount, minAmount                    = 1e30, 1e-9
)

// Task is a piece of work. Times are in seconds on the plan's clock, which begins at 0.
type Task struct {
	Name     string // unlike that of any other task
	Kind     Kind
	Samples  int     // to be done
	Most     int     // that may be done, in an epoch with a Curve; 0: Samples
	Cost     float64 // work for a sample, in units of Member.Speed; 0: 1
	Bytes    float64 // of a sample, which a member other than Holder takes over its link
	Holder   string  // the member that has the samples, if any
	Memory   float64 // bytes that a member needs
	Arrival  float64 // no earlier start
	Deadline float64 // 0: none
	Seen     int     // samples that the model had learned from before, for Curve
	Curve    []Point // as measured; no points, or 3 to 1000, each of more samples than the one before
}

// Point is how good a model was after so many samples: its accuracy, or its loss, negated.
type Point struct{ Samples, Accuracy float64 }

// Member is who can do tasks, as it has measured itself.
type Member struct {
	Name   string  // unlike that of any other member
	Speed  float64 // work per second, in samples or in floating-point operations: see Task.Cost
	Memory float64 // bytes; 0: enough
	Link   float64 // bytes per second; 0: no limit
	From   float64 // when it is free, on the plan's clock
}

// Weights is what a second of the longest time, all accuracy (1) and all members busy (1) count. All 0 is Time 1.
type Weights struct{ Time, Accuracy, Resource float64 }

// Part is samples of a task at a member: From, and those after it to before To.
type Part struct {
	Task, Member string
	From, To     int
}

// State is what a plan is made from. What a member brings to Gather is a State with itself as the one member.
type State struct {
	Now     float64 // seconds on the plan's clock
	Weights Weights
	Members []Member
	Tasks   []Task // without those whose outcome is safe
	// Done counts as done. An epoch has samples 0 to Most-1, done by whomever. Those of a fit or evaluation count at the
	// member that did them, where their outcome is: another begins anew.
	Done []Part
	// Missed was not done in time: its task goes on at other members, if any can do it.
	Missed []Part
}

// ErrInvalid is a state that cannot be planned with.
var ErrInvalid = errors.New("invalid")

func (t Task) whole() bool       { return t.Kind != Epoch }
func (t Task) most() int         { return max(t.Most, t.Samples) }
func (t Task) cost() float64     { return cmp.Or(t.Cost, 1) }
func (m Member) memory() float64 { return cmp.Or(m.Memory, math.Inf(1)) }

// seconds is the time for a sample, infinite if the member has too little memory.
func (m Member) seconds(t Task) float64 {
	switch {
	case t.Memory > m.memory():
		return math.Inf(1)
	case t.Holder == m.Name || m.Link == 0:
		return t.cost() / m.Speed
	}
	return t.cost()/m.Speed + t.Bytes/m.Link
}

// Validate returns all faults of a state at once.
func (s State) Validate() error {
	f, n, m := faults{of: "plan"}, len(s.Tasks), len(s.Members)
	f.add(m == 0 || max(n, 1)*m > maxPairs, "%d tasks for %d members: want a member, and %d pairs of a task and a member at most", n, m, maxPairs)
	f.amounts("now", s.Now, "weight of time", s.Weights.Time, "weight of accuracy", s.Weights.Accuracy, "weight of resource", s.Weights.Resource)
	f.add(len(s.Done)+len(s.Missed) > maxParts, "%d parts done or missed: want %d at most", len(s.Done)+len(s.Missed), maxParts)
	for _, d := range append(s.Done[:len(s.Done):len(s.Done)], s.Missed...) {
		f.add(d.From < 0 || d.To <= d.From || d.To > maxSamples, "samples %d to %d of task %.40q: want the first before the second", d.From, d.To, d.Task)
	}
	names := map[string]bool{}
	named := func(kind, name string) {
		f.of = fmt.Sprintf("%s %.40q", kind, name)
		f.add(name == "" || len(name) > maxName || names[kind+name], "name: want one of its own, of 1 to %d bytes", maxName)
		names[kind+name] = true
	}
	for _, t := range s.Tasks {
		named("task", t.Name)
		f.add(t.Kind != Fit && t.Kind != Epoch && t.Kind != Evaluation, "kind %.40q: want %s, %s or %s", t.Kind, Fit, Epoch, Evaluation)
		f.add(t.Samples < 1 || t.most() > maxSamples, "samples %d: want 1 to %d", t.most(), maxSamples)
		f.add(t.Most != 0 && t.Most < t.Samples, "most %d: want no less than the %d samples", t.Most, t.Samples)
		f.add(t.Most > t.Samples && (t.whole() || len(t.Curve) == 0), "most %d: only an epoch with a curve gains by more than its samples", t.Most)
		f.add(t.Seen < 0 || t.Seen > maxSamples, "seen %d: want 0 to %d", t.Seen, maxSamples)
		f.amounts("cost", t.Cost, "bytes", t.Bytes, "memory", t.Memory, "arrival", t.Arrival, "deadline", t.Deadline)
		f.add(t.Cost != 0 && t.Cost < minAmount, "cost %v: want %g at least, or 0", t.Cost, minAmount)
		f.add(t.Deadline != 0 && t.Deadline <= t.Arrival, "deadline %v: want it after the arrival at %v", t.Deadline, t.Arrival)
		f.add(!fits(t.Curve), "curve: want %d to %d points, each of more samples than the one before it, or none", minPoints, maxPoints)
	}
	for _, m := range s.Members {
		named("member", m.Name)
		f.add(m.Speed < minAmount, "speed %v: want more than 0", m.Speed)
		f.add(m.Link != 0 && m.Link < minAmount, "link %v: want %g at least, or 0", m.Link, minAmount)
		f.amounts("speed", m.Speed, "memory", m.Memory, "link", m.Link, "from", m.From)
	}
	return errors.Join(f.list...)
}

// faults collects what is wrong with something.
type faults struct {
	of   string
	list []error
}

func (f *faults) add(wrong bool, format string, args ...any) {
	if wrong {
		f.list = append(f.list, fmt.Errorf("%s: %w: %s", f.of, ErrInvalid, fmt.Sprintf(format, args...)))
	}
}

// amounts looks at pairs of a name and a number.
func (f *faults) amounts(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1].(float64)
		f.add(!(v >= 0 && v <= maxAmount), "%s %v: want a number from 0 to %g", pairs[i], v, maxAmount)
	}
}
