// Package tasks is the part of one member in the tasks that a flock carries out together: what it brings to the others,
// the plan that all make of it, and what it did. It has no clock: times are arguments, in seconds.
package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/peer/meetings"
	"github.com/seed-97356399/murmuration/peer/plan"
)

// maxTold bounds the parts of others that a member tells.
const maxTold = 10_000

// Queue is the tasks as one member knows them. All have made the same plan from the same state.
type Queue struct {
	plan     *plan.Plan // nil before the first meeting
	me       string
	meetings meetings.Meetings
	tasks    []plan.Task // all that were heard of, in the order of their names
	done     []plan.Part // what all members have told, and what this one has done since
	missed   []plan.Part // what this member was to do, and others do now
	last     float64     // when the members met
	leftOut  error
	counts   result.Tasks
}

// Counts are the figures for the result.
func (q *Queue) Counts() *result.Tasks {
	out := q.counts
	for _, t := range q.tasks {
		all, trained, best := max(t.Most, t.Samples), 0, 0
		if t.Kind == plan.Epoch {
			_, rest := plan.Remaining(t, "", q.done)
			best = all - rest
		}
		for _, d := range q.done {
			if d.Task == t.Name {
				if trained += d.To - d.From; t.Kind != plan.Epoch {
					_, rest := plan.Remaining(t, d.Member, q.done)
					best = max(best, all-rest)
				}
			}
		}
		if out.Skipped += max(0, t.Samples-best); t.Kind != plan.Evaluation {
			out.Twice += trained - best
		}
	}
	return &out
}

// Meet tells all members what this one can do and has done, and plans with them what is left. It returns false when all
// tasks are done. Own is a state with this member and the tasks that it knows.
func (q *Queue) Meet(ctx context.Context, flock meetings.Flock, own plan.State) (more bool, err error) {
	q.me, own.Done = own.Members[0].Name, q.told()
	q.know(own.Tasks)
	own.Tasks = q.tasks
	if q.plan != nil {
		was := q.plan.State
		was.Now, was.Done = own.Now, q.done
		for _, m := range q.plan.Missed(was) {
			if m.Member == q.me && !slices.Contains(q.missed, m) {
				q.missed = append(q.missed, m)
			}
		}
	}
	own.Missed = q.missed
	block, err := plan.Encode(own)
	if err != nil {
		return false, err
	}
	all, err := q.meetings.Gather(ctx, flock, "tasks", block)
	if err != nil {
		return false, err
	}
	s, left := plan.Merge(all)
	if q.leftOut = errors.Join(left...); !has(s, q.me) {
		return false, fmt.Errorf("planning without this member: %w", q.leftOut)
	}
	q.know(s.Tasks)
	q.done = joined(append(q.done, slices.DeleteFunc(s.Done, func(d plan.Part) bool { // what those do that never were
		return q.plan != nil && !has(s, d.Member) && !has(q.plan.State, d.Member)
	})...))
	if s.Done = q.done; q.plan != nil {
		q.gone(s)
	}
	q.last = s.Now
	if q.plan == nil || q.plan.Outdated(s) != "" || len(s.Missed) > len(q.plan.State.Missed) {
		if q.plan, err = plan.Make(s); err != nil {
			return false, fmt.Errorf("planning: %w", err)
		}
		q.counts.Plans++
	}
	return slices.ContainsFunc(q.plan.Assignments, func(a plan.Assignment) bool { return len(q.left(a)) > 0 }), nil
}

// know takes note of tasks that are new to this member.
func (q *Queue) know(tasks []plan.Task) {
	for _, t := range tasks {
		if !slices.ContainsFunc(q.tasks, func(o plan.Task) bool { return o.Name == t.Name }) {
			q.tasks = append(q.tasks, t)
		}
	}
	slices.SortFunc(q.tasks, func(a, b plan.Task) int { return cmp.Compare(a.Name, b.Name) })
}

// LeftOut is why members, and what they told, are not in the plan of the last meeting; nil if all are.
func (q *Queue) LeftOut() error { return q.leftOut }

// told is what this member did, and what those did that are gone.
func (q *Queue) told() []plan.Part {
	if q.plan == nil {
		return nil
	}
	told := slices.DeleteFunc(slices.Clone(q.done), func(d plan.Part) bool { return d.Member != q.me && has(q.plan.State, d.Member) })
	if len(told) > maxTold { // else those that never were, of whom one has told, would make this member's own too much
		told = slices.DeleteFunc(told, func(d plan.Part) bool { return d.Member != q.me })
	}
	return told
}

func has(s plan.State, member string) bool {
	return slices.ContainsFunc(s.Members, func(m plan.Member) bool { return m.Name == member })
}

// gone counts what members that have gone can have done since they told last: others do it again.
func (q *Queue) gone(s plan.State) {
	for _, m := range q.plan.State.Members {
		if has(s, m.Name) {
			continue
		}
		left := 0
		for _, a := range q.plan.Assignments {
			if a.Member == m.Name && q.task(a.Task).Kind != plan.Evaluation {
				for _, r := range q.left(a) {
					left += r[1] - r[0]
				}
			}
		}
		q.counts.InDoubt += min(left, int(math.Ceil(m.Speed*max(0, s.Now-q.last))))
	}
}

// Met is when the members met last, on the clock that all plan by.
func (q *Queue) Met() float64 { return q.last }

func (q *Queue) task(name string) plan.Task {
	return q.tasks[slices.IndexFunc(q.tasks, func(t plan.Task) bool { return t.Name == name })]
}

// left is what is not done of an assignment.
func (q *Queue) left(a plan.Assignment) (list [][2]int) {
	by := ""
	if q.task(a.Task).Kind != plan.Epoch {
		by = a.Member
	}
	rest, _ := plan.Remaining(q.task(a.Task), by, q.done)
	for _, own := range a.Ranges {
		for _, r := range rest {
			if from, to := max(r[0], own[0]), min(r[1], own[1]); from < to {
				list = append(list, [2]int{from, to})
			}
		}
	}
	return list
}

// Next is what this member is to do now: at most so many samples of a task. It is false if there is nothing.
func (q *Queue) Next(most int, now float64) (t plan.Task, from, to int, ok bool) {
	for _, a := range q.plan.Assignments {
		if t = q.task(a.Task); a.Member == q.me && t.Arrival <= now {
			for _, r := range q.left(a) {
				return t, r[0], min(r[1], r[0]+most), true
			}
		}
	}
	return t, 0, 0, false
}

// Did takes note of what Next has returned, of when that was, and for an evaluation of the accuracy.
func (q *Queue) Did(t plan.Task, from, to int, began, ended, accuracy float64) {
	q.done = joined(append(q.done, plan.Part{Task: t.Name, Member: q.me, From: from, To: to}))
	list := q.counts.List
	if n := len(list); n == 0 || list[n-1].Task != t.Name || list[n-1].Plan != q.counts.Plans {
		list = append(list, result.Task{Task: t.Name, Member: q.me, Plan: q.counts.Plans, Start: began})
		if t.Kind == plan.Evaluation {
			list[n].Accuracy = new(cli.Number)
		}
	}
	last := &list[len(list)-1]
	if last.End, last.Samples = ended, last.Samples+to-from; last.Accuracy != nil {
		*last.Accuracy += (cli.Number(accuracy) - *last.Accuracy) * cli.Number(to-from) / cli.Number(last.Samples)
	}
	q.counts.List = list
}

// joined is parts in order, those of a member joined where they meet.
func joined(parts []plan.Part) (out []plan.Part) {
	slices.SortFunc(parts, func(a, b plan.Part) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Member, b.Member), a.From-b.From)
	})
	for _, p := range parts {
		if n := len(out); n > 0 && out[n-1].Task == p.Task && out[n-1].Member == p.Member && p.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
		} else {
			out = append(out, p)
		}
	}
	return out
}
