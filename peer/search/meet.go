package search

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Plan is what follows from a meeting, the same for all that were there.
type Plan struct {
	// Results are all so far, by trial and rung.
	Results []Result
	// Jobs are what members train from now on: those that go on, and new ones. Who is in none trains nothing.
	Jobs []Job
	// Present are the members, in order of their names.
	Present []Member
	// Asked are the models that each member, by its name, brings to the next meeting, most urgent first.
	Asked map[string][]Held
	// Over: all trials have ended, and nothing is left to train.
	Over bool
	// Came are the models that were brought.
	Came []Model
}

// Member is one that was at a meeting, and where others join it.
type Member struct {
	Name      string
	Addresses []string
}

// Meet makes a plan of the reports that members have brought to Gather. What a member cannot have meant is left out,
// with its reason in left; the plan is of the others. The same blocks give the same plan.
func (c Config) Meet(blocks [][]byte) (p Plan, left error) {
	reports, left := read(c, blocks)
	known := map[Held]Result{}
	add := func(r Result) {
		if key := (Held{r.Trial, r.Steps}); known[key].Steps == 0 {
			known[key] = r
		}
	}
	for _, r := range reports {
		p.Present, p.Came = append(p.Present, Member{r.Member, r.Addresses}), append(p.Came, r.Brings...)
		for _, one := range r.Results {
			add(one)
		}
	}
	working := byJob(reports)
	busy := map[string]bool{}
	running := map[int]int{}
	for _, group := range working {
		j := *group[0].Job
		if outcomes, ended := outcomesOf(group); ended {
			add(Result{j.Trial, j.To, median(outcomes)})
		} else if known[Held{j.Trial, j.To}].Steps == 0 && running[j.Trial] == 0 { // else it was done, or is, by others
			running[j.Trial], p.Jobs = j.To, append(p.Jobs, j)
			for _, r := range group {
				busy[r.Member] = true
			}
		}
	}
	p.Results = slices.SortedFunc(maps.Values(known), byPlace)
	s, held := c.standing(p.Results), holders(reports, working, known)
	free := slices.DeleteFunc(names(p.Present), func(n string) bool { return busy[n] })
	todo := s.next(running)
	for _, j := range todo {
		if m := min(max(c.Members, 1), len(p.Present)); len(free) >= m {
			if j, able := assign(s, j, m, free, held); able {
				p.Jobs = append(p.Jobs, j)
				free = slices.DeleteFunc(free, func(n string) bool { return slices.Contains(j.Members, n) })
			}
		}
	}
	p.Over = len(p.Jobs) == 0 && len(todo) == 0
	p.Asked = asked(s, names(p.Present), held)
	return p, left
}

// read returns the reports in the blocks, by the names of their members.
func read(c Config, blocks [][]byte) (list []Report, left error) {
	for _, block := range blocks {
		r, err := decode(c, block)
		switch twice := func(o Report) bool { return o.Member == r.Member }; {
		case err == nil && slices.ContainsFunc(list, twice):
			err = fmt.Errorf("two reports of %.40q", r.Member)
			fallthrough
		case err != nil:
			left = errors.Join(left, fmt.Errorf("search: %w", err))
		default:
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Report) int { return cmp.Compare(a.Member, b.Member) })
	return list, left
}

// byJob groups members by what they train, in order of the trials.
func byJob(reports []Report) (groups [][]Report) {
	for _, r := range reports {
		if r.Job == nil {
			continue
		}
		same := func(g []Report) bool { return compareJobs(*g[0].Job, *r.Job) == 0 }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i] = append(groups[i], r)
		} else {
			groups = append(groups, []Report{r})
		}
	}
	slices.SortFunc(groups, func(a, b []Report) int { return compareJobs(*a[0].Job, *b[0].Job) })
	return groups
}

func compareJobs(a, b Job) int {
	return cmp.Or(a.Trial-b.Trial, a.To-b.To, a.From-b.From, slices.Compare(a.Members, b.Members))
}

// outcomesOf are the outcomes of those that are left of a sub-flock, once all have one.
func outcomesOf(group []Report) (list []Outcome, ended bool) {
	for _, r := range group {
		if r.Outcome == nil {
			return nil, false
		}
		list = append(list, *r.Outcome)
	}
	return list, true
}

// holders are the members that have each model, those included that have just made it.
func holders(reports []Report, working [][]Report, known map[Held]Result) map[Held][]string {
	held := map[Held][]string{}
	add := func(h Held, member string) {
		if r := known[h]; r.Model != "" && r.Failed == "" && !slices.Contains(held[h], member) {
			held[h] = append(held[h], member)
		}
	}
	for _, r := range reports {
		for _, h := range r.Held {
			add(h, r.Member)
		}
	}
	for _, group := range working {
		for _, r := range group {
			h := Held{r.Job.Trial, r.Job.To}
			if r.Outcome != nil && r.Outcome.Model == known[h].Model {
				add(h, r.Member)
			}
		}
	}
	return held
}

// assign gives a job to members that are free and have the model of the highest rung that any member has; it is not able to if
// these have it not yet.
func assign(s standing, j Job, members int, free []string, held map[Held][]string) (Job, bool) {
	if !s.Anew {
		for _, rung := range s.rungs {
			if rung < j.To && len(held[Held{j.Trial, rung}]) > 0 {
				j.From = rung
			}
		}
	}
	if j.From > 0 {
		free = slices.DeleteFunc(slices.Clone(free), func(n string) bool { return !slices.Contains(held[Held{j.Trial, j.From}], n) })
	}
	if len(free) < members {
		return j, false
	}
	j.Members = slices.Clone(free[:members])
	return j, true
}

// asked are the models that some members lack, each of its first holder: of each trial the last that any member has. One later may be
// lost with those that made it.
func asked(s standing, present []string, held map[Held][]string) map[string][]Held {
	by, last := map[string][]Held{}, map[int]Result{}
	for _, rung := range s.rungs {
		for _, r := range s.at[rung] {
			if len(held[Held{r.Trial, rung}]) > 0 {
				last[r.Trial] = r
			}
		}
	}
	var lacking []Result
	for trial, r := range last {
		if now := s.last[trial]; len(held[Held{trial, r.Steps}]) < len(present) && now.Failed == "" && now.Steps < s.Steps {
			lacking = append(lacking, r)
		}
	}
	slices.SortFunc(lacking, func(a, b Result) int { return cmp.Or(b.Steps-a.Steps, better(a, b)) })
	for _, r := range lacking {
		h := Held{r.Trial, r.Steps}
		by[held[h][0]] = append(by[held[h][0]], h)
	}
	return by
}

func names(members []Member) (list []string) {
	for _, m := range members {
		list = append(list, m.Name)
	}
	return list
}

// Of is the job of a member; false if it has none.
func (p Plan) Of(member string) (Job, bool) {
	for _, j := range p.Jobs {
		if slices.Contains(j.Members, member) {
			return j, true
		}
	}
	return Job{}, false
}
