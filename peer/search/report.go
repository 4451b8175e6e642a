package search

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of a report.
const (
	MaxModel   = 40 << 20 // bytes of a model that travels: with others it fits into a block of Gather
	MaxBrought = 40 << 20 // bytes of all models in a report, or one model
	maxReport  = 64 << 20
	maxPoints  = 32 // of a curve
	maxHash    = 64
	maxSpent   = min(1<<44, math.MaxInt>>16) // steps of an outcome
	maxWhy     = 4 * 300                     // bytes of why a trial has failed: letters have up to four
)

// Point is how good a trial was after so many steps of each member.
type Point struct {
	Steps int     `json:"steps"`
	Score float64 `json:"score"`
}

// Outcome is what a member has of a trial that it has trained: a higher Score is better.
type Outcome struct {
	Score float64 `json:"score"`
	// Spent is the steps that the member has made, and Seconds the time that they took.
	Spent   int     `json:"spent"`
	Seconds float64 `json:"seconds"`
	Curve   []Point `json:"curve,omitempty"`
	// Model is the hash of the member's model, empty if it keeps none.
	Model string `json:"model,omitempty"`
	// Failed is why the trial cannot be trained, such as a loss that is not finite: it goes no further.
	Failed string `json:"failed,omitempty"`
}

// Result is the outcome of a trial at a rung: Steps are those of each member, Spent those of all members since the last rung, or since the one
// whose model was there; Score, Curve and Model are of the member whose score is the median.
type Result struct {
	Trial int `json:"trial"`
	Steps int `json:"rung"`
	Outcome
}

// Job is a trial that Members train from a rung, whose model they have, or from its beginning, to another.
type Job struct {
	Trial   int      `json:"trial"`
	From    int      `json:"from"`
	To      int      `json:"to"`
	Members []string `json:"members"`
}

// Same tells whether two jobs are one.
func (j Job) Same(o Job) bool { return compareJobs(j, o) == 0 }

// String names the job, unlike any other of the search.
func (j Job) String() string {
	return fmt.Sprintf("trial %d from %d to %d by %s", j.Trial, j.From, j.To, strings.Join(j.Members, ", "))
}

// Held is a model that a member has: of a trial at a rung.
type Held struct {
	Trial int `json:"trial"`
	Steps int `json:"rung"`
}

// Model is a model that travels; who gets it compares its hash with that of the Result.
type Model struct {
	Held
	Data []byte `json:"data"`
}

// Report is what a member brings to a meeting.
type Report struct {
	// Member is its name, unlike that of any other; Addresses are where others can join it.
	Member    string   `json:"member"`
	Addresses []string `json:"addresses,omitempty"`
	// Results are all that it knows of, Held the models that it has, Brings those that the last Plan asked it for.
	Results []Result `json:"results,omitempty"`
	Held    []Held   `json:"held,omitempty"`
	Brings  []Model  `json:"brings,omitempty"`
	// Job is what it trains, nil for nothing, and Outcome how that has ended, nil until it has.
	Job     *Job     `json:"job,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Encode is the report as a block for Gather.
func (r Report) Encode() ([]byte, error) {
	text, err := json.Marshal(r)
	if err == nil && len(text) > maxReport {
		err = fmt.Errorf("a report of %d bytes: want at most %d", len(text), maxReport)
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return text, nil
}

// decode reads a report, and refuses what this search cannot have.
func decode(c Config, block []byte) (r Report, err error) {
	if len(block) > maxReport {
		return r, fmt.Errorf("a report of %d bytes: want at most %d", len(block), maxReport)
	}
	if err := json.Unmarshal(block, &r); err != nil {
		return r, fmt.Errorf("reading a report: %w", err)
	}
	rungs := c.Rungs()
	place := func(what string, trial, steps int) error {
		if trial < 0 || trial >= c.Trials || !slices.Contains(rungs, steps) {
			return fmt.Errorf("a report of %.40q: %s: there is no trial %d with a rung at %d steps", r.Member, what, trial, steps)
		}
		return nil
	}
	var faults []error
	if r.Member == "" || len(r.Member) > maxText || len(r.Results) > c.Trials*len(rungs) || len(r.Held) > c.Trials*len(rungs) {
		faults = append(faults, fmt.Errorf("a report of %.40q: want a name, and a result and a model at most of each rung", r.Member))
	}
	for _, one := range r.Results {
		faults = append(faults, place("a result", one.Trial, one.Steps), one.validate())
	}
	for _, one := range r.Held {
		faults = append(faults, place("a model", one.Trial, one.Steps))
	}
	for _, one := range r.Brings {
		faults = append(faults, place("a model", one.Trial, one.Steps))
	}
	if j := r.Job; j != nil {
		faults = append(faults, place("a job", j.Trial, j.To))
		if j.From != 0 {
			faults = append(faults, place("a job", j.Trial, j.From))
		}
		twice := len(j.Members) != len(slices.Compact(slices.Sorted(slices.Values(j.Members))))
		if j.From >= j.To || len(j.Members) > maxMembers || twice || !slices.Contains(j.Members, r.Member) {
			faults = append(faults, fmt.Errorf("a report of %.40q: want a job of its own, from a rung to a higher one, of members that are there once", r.Member))
		}
	}
	if r.Outcome != nil {
		if r.Job == nil {
			faults = append(faults, fmt.Errorf("a report of %.40q: an outcome without a job", r.Member))
		}
		faults = append(faults, r.Outcome.validate())
	}
	return r, errors.Join(faults...)
}

// validate refuses what would not be finite once it is added up.
func (o Outcome) validate() error {
	if math.IsNaN(o.Score) || o.Spent < 0 || o.Spent > maxSpent || !(o.Seconds >= 0) || len(o.Curve) > maxPoints || len(o.Model) > maxHash || len(o.Failed) > maxWhy {
		return fmt.Errorf("an outcome with score %v, %d steps in %v s and %d points is out of range", o.Score, o.Spent, o.Seconds, len(o.Curve))
	}
	return nil
}

// median is the outcome of a trial whose members have these outcomes: that of the median, with the steps of all.
func median(all []Outcome) (o Outcome) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Outcome) int {
		return cmp.Or(-cmp.Compare(min(len(a.Failed), 1), min(len(b.Failed), 1)), cmp.Compare(a.Score, b.Score), cmp.Compare(a.Model, b.Model))
	})
	o = all[(len(all)-1)/2]
	o.Spent = 0
	for _, one := range all {
		o.Spent, o.Seconds = o.Spent+one.Spent, max(o.Seconds, one.Seconds)
	}
	return o
}

// better orders results of a rung, the best first.
func better(a, b Result) int { return cmp.Or(-cmp.Compare(a.Score, b.Score), a.Trial-b.Trial) }

// byPlace orders results by trial, then by rung.
func byPlace(a, b Result) int { return cmp.Or(a.Trial-b.Trial, a.Steps-b.Steps) }
