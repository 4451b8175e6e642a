package search

import (
	"errors"
	"fmt"
	"slices"
)

// Config is what all members of a search must have alike, beside the settings.
type Config struct {
	// Trials is the number of settings, 1 to MaxTrials.
	Trials int
	// Steps is the most steps that each member of a trial makes, and Least those of the first rung; 0: Steps, as in random and
	// grid search.
	Steps, Least int
	// Reduce is how many trials at a rung one goes on of, and the factor between the steps of two rungs. 0: 3.
	Reduce int
	// Members is the size of the sub-flock that trains a trial; fewer if there are no more members. 0: 1.
	Members int
	// Anew: a trial begins anew at each rung, since its model cannot be trained on.
	Anew bool
}

const (
	maxSteps      = 1 << 30
	defaultReduce = 3
	maxReduce     = 1 << 16
	maxMembers    = 1 << 16
)

// Validate returns all faults of a search at once.
func (c Config) Validate() error {
	var list []error
	for _, v := range []struct {
		name            string
		is, least, most int
	}{
		{"trials", c.Trials, 1, MaxTrials}, {"steps", c.Steps, 1, maxSteps}, {"least", c.Least, 0, max(c.Steps, 0)},
		{"members", c.Members, 0, maxMembers},
	} {
		if v.is < v.least || v.is > v.most {
			list = append(list, fmt.Errorf("%s: %w: %d: want %d to %d", v.name, ErrInvalid, v.is, v.least, v.most))
		}
	}
	if c.Reduce != 0 && (c.Reduce < 2 || c.Reduce > maxReduce) {
		list = append(list, fmt.Errorf("reduce: %w: %d: want 2 to %d", ErrInvalid, c.Reduce, maxReduce))
	}
	return errors.Join(list...)
}

// reduce is above 1 even for a search that Validate refuses: its rungs may be asked for, and have an end.
func (c Config) reduce() int {
	if c.Reduce < 2 {
		return defaultReduce
	}
	return c.Reduce
}

// Rungs are the steps at which trials are judged, the last at Steps.
func (c Config) Rungs() (rungs []int) {
	for at := max(c.Least, 1); c.Least > 0 && at < c.Steps; at *= c.reduce() {
		if rungs = append(rungs, at); at > c.Steps/c.reduce() {
			break // the next could be beyond what an int holds
		}
	}
	return append(rungs, c.Steps)
}

// standing is how far the trials are, as results tell.
type standing struct {
	Config
	rungs []int
	at    map[int][]Result // by steps, of trials that have not failed, the best first
	last  map[int]Result   // of each trial
}

func (c Config) standing(results []Result) standing {
	s := standing{Config: c, rungs: c.Rungs(), at: map[int][]Result{}, last: map[int]Result{}}
	for _, r := range results {
		if last, any := s.last[r.Trial]; !any || r.Steps > last.Steps {
			s.last[r.Trial] = r
		}
		if r.Failed == "" {
			s.at[r.Steps] = append(s.at[r.Steps], r)
		}
	}
	for _, list := range s.at {
		slices.SortFunc(list, better)
	}
	return s
}

// Best is the best result at the highest rung that a trial has reached, of those that have not failed later; false if there is none.
func (c Config) Best(results []Result) (best Result, ok bool) {
	s := c.standing(results)
	for _, rung := range slices.Backward(s.rungs) {
		if list := s.sound(rung); len(list) > 0 {
			return list[0], true
		}
	}
	return best, false
}

// sound are the results at a rung of trials that have not failed later, the best first.
func (s standing) sound(rung int) []Result {
	return slices.DeleteFunc(slices.Clone(s.at[rung]), func(r Result) bool { return s.last[r.Trial].Failed != "" })
}

// next are the trials that may be trained now, in the order in which they should be, with the steps to which: those
// that go on, from the highest rung down, then one that is new after the other. Running are the steps to which trials are trained now.
func (s standing) next(running map[int]int) (list []Job) {
	full := true // all have come to this rung that ever will
	promoted := make([][]Job, len(s.rungs))
	expected := map[int]bool{} // at this rung
	var fresh []Job
	for trial := range s.Trials {
		if expected[trial] = true; s.last[trial].Steps == 0 && running[trial] == 0 {
			fresh = append(fresh, Job{Trial: trial, To: s.rungs[0]})
		}
	}
	for k, rung := range s.rungs {
		for trial := range expected {
			last := s.last[trial]
			full = full && (last.Steps >= rung || last.Failed != "")
		}
		if k+1 == len(s.rungs) {
			break
		}
		list, going := s.at[rung], map[int]bool{}
		most := len(list) / s.reduce()
		if full {
			most = max(most, min(1, len(list)))
			if sound := s.sound(rung); !slices.ContainsFunc(list[:most], func(r Result) bool { return s.last[r.Trial].Failed == "" }) {
				list, most = sound, min(1, len(sound)) // all that went on have failed: the next does
			}
		}
		for i, r := range list {
			if i < most || s.last[r.Trial].Steps > rung {
				going[r.Trial] = true
			}
			if i < most && s.last[r.Trial].Steps == rung && running[r.Trial] == 0 {
				promoted[k] = append(promoted[k], Job{Trial: r.Trial, To: s.rungs[k+1]})
			}
		}
		expected = going
	}
	for _, jobs := range slices.Backward(promoted) {
		list = append(list, jobs...)
	}
	return append(list, fresh...)
}
