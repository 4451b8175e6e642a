package plan

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// fatal is what rapid's and testing's T have in common.
type fatal interface {
	Fatalf(format string, args ...any)
}

// valid holds a plan against what every plan must keep, from its assignments alone.
func valid(t fatal, s State, p *Plan) {
	if h, ok := t.(testing.TB); ok {
		h.Helper()
	}
	free, busy, ends := map[string]float64{}, 0.0, map[string]float64{}
	tasks, members := map[string]Task{}, map[string]Member{}
	counted := map[string][][2]int{}
	doers := map[string]string{}
	for _, m := range s.Members {
		members[m.Name], free[m.Name] = m, max(m.From, s.Now)
	}
	for _, task := range s.Tasks {
		tasks[task.Name] = task
	}
	last := p.Start
	for i, a := range p.Assignments {
		task, member := tasks[a.Task], members[a.Member]
		if i > 0 && a.Start < p.Assignments[i-1].Start {
			t.Fatalf("assignment %d begins before the one before it", i)
		}
		if a.Start < free[a.Member]-1e-9 {
			t.Fatalf("%s begins %s at %v, and is free at %v", a.Member, a.Task, a.Start, free[a.Member])
		}
		if a.Start < task.Arrival {
			t.Fatalf("%s begins at %v, before it arrives", a.Task, a.Start)
		}
		if task.Memory > 0 && member.Memory > 0 && task.Memory > member.Memory {
			t.Fatalf("%s has too little memory for %s", a.Member, a.Task)
		}
		took := float64(a.Samples) * cmp.Or(task.Cost, 1) / member.Speed
		if member.Link > 0 && task.Holder != member.Name {
			took += float64(a.Samples) * task.Bytes / member.Link
		}
		if math.Abs(a.End-a.Start-took) > 1e-6*max(1, a.End) {
			t.Fatalf("%s takes %v for %d samples of %s, want %v", a.Member, a.End-a.Start, a.Samples, a.Task, took)
		}
		if by, ok := doers[a.Task]; ok && task.Kind != Epoch && by != a.Member {
			t.Fatalf("%s, which is whole, is at %s and %s", a.Task, by, a.Member)
		}
		n := 0
		for _, r := range a.Ranges {
			n += r[1] - r[0]
		}
		if n != a.Samples || n < 1 {
			t.Fatalf("%d samples in ranges %v", a.Samples, a.Ranges)
		}
		counted[a.Task] = append(counted[a.Task], a.Ranges...)
		doers[a.Task] = a.Member
		free[a.Member], busy = a.End, busy+a.End-a.Start
		last, ends[a.Task] = max(last, a.End), max(ends[a.Task], a.End)
	}
	if math.Abs(last-p.Start-p.Makespan) > 1e-9*max(1, last) {
		t.Fatalf("makespan %v, the last ends after %v", p.Makespan, last-p.Start)
	}
	if p.Bound > p.Makespan*(1+1e-9) {
		t.Fatalf("bound %v above the makespan %v", p.Bound, p.Makespan)
	}
	if p.Makespan > 0 && math.Abs(busy/p.Makespan/float64(len(s.Members))-p.Resource) > 1e-9 {
		t.Fatalf("resource %v", p.Resource)
	}
	late := 0
	for _, task := range s.Tasks {
		if slices.Contains(p.Nobody, task.Name) {
			continue
		}
		list := counted[task.Name]
		for _, d := range s.Done {
			if d.Task == task.Name && (task.Kind == Epoch || d.Member == doers[task.Name]) {
				list = append(list, [2]int{d.From, d.To})
			}
		}
		slices.SortFunc(list, func(a, b [2]int) int { return a[0] - b[0] })
		next, n := 0, 0
		for _, r := range list {
			if r[0] < next || r[0] > next && task.Most <= task.Samples {
				t.Fatalf("%s: samples %v: one is skipped or done twice", task.Name, list)
			}
			next, n = r[1], n+r[1]-r[0]
		}
		if len(list) > 0 && (n < task.Samples || next > max(task.Samples, task.Most)) {
			t.Fatalf("%s: %d samples, want %d to %d", task.Name, n, task.Samples, task.Most)
		}
		if end := ends[task.Name]; task.Deadline > 0 && end > task.Deadline*(1+1e-9) {
			late++
			if !slices.ContainsFunc(p.Late, func(l Late) bool {
				return l.Task == task.Name && math.Abs(l.By-(end-task.Deadline)) < 1e-9*max(1, end)
			}) {
				t.Fatalf("%s is late by %v, and the plan says %v", task.Name, end-task.Deadline, p.Late)
			}
		}
	}
	if late != len(p.Late) || p.Feasible != (late+len(p.Nobody) == 0) {
		t.Fatalf("%d are late: the plan says %v, feasible %v", late, p.Late, p.Feasible)
	}
}
