package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/compare"
	"github.com/seed-97356399/murmuration/peer/search"
)

// Result is the output of --json.
type Result struct {
	Best   Trial   `json:"best"`
	Trials []Trial `json:"trials"`
	// StepsTotal are the steps of all members for all trials, but for those that were lost with members.
	StepsTotal int     `json:"steps_total"`
	Method     string  `json:"method"`
	Scores     string  `json:"scores"` // what a score is
	Peers      int     `json:"peers"`
	PeersLost  int     `json:"peers_lost"`
	Seconds    float64 `json:"seconds"`
	Out        string  `json:"out,omitempty"`
	Plot       string  `json:"plot,omitempty"`
}

// Trial is a setting and how far it has come: Steps are those of all its members, Rung those of each when it was judged
// last.
type Trial struct {
	Trial    int            `json:"trial"`
	Settings search.Setting `json:"settings"`
	Score    cli.Number     `json:"score"`
	Steps    int            `json:"steps"`
	Rung     int            `json:"rung"`
	Failed   string         `json:"failed,omitempty"`
	Curve    []search.Point `json:"curve,omitempty"`
}

// result makes a result of those of all rungs.
func (s *sought) result(all []search.Result, peers int, seconds float64) (Result, error) {
	r := Result{Method: s.Method, Scores: s.scores(), Peers: peers, Seconds: seconds}
	for i, setting := range s.list {
		r.Trials = append(r.Trials, Trial{Trial: i, Settings: setting, Score: cli.Number(math.NaN())})
	}
	for _, one := range all { // by trial and rung
		t := &r.Trials[one.Trial]
		t.Rung, t.Steps, t.Failed = one.Steps, t.Steps+one.Spent, one.Failed
		if r.StepsTotal += one.Spent; one.Failed == "" {
			t.Score = cli.Number(one.Score)
		}
		t.Curve = append(t.Curve, one.Curve...)
	}
	best, any := s.config.Best(all)
	if !any {
		why := "none was trained"
		for _, t := range r.Trials {
			if t.Failed != "" {
				why = t.Failed
			}
		}
		return r, fmt.Errorf("no trial has come to an end that can be judged: %s", why)
	}
	r.Best = r.Trials[best.Trial]
	r.Best.Curve = nil
	return r, nil
}

// ranked are the trials, the best first, and after all others those that have failed.
func (r Result) ranked() []Trial {
	list := slices.Clone(r.Trials)
	slices.SortStableFunc(list, func(a, b Trial) int {
		return cmp.Or(min(len(a.Failed), 1)-min(len(b.Failed), 1), b.Rung-a.Rung, cmp.Compare(b.Score, a.Score))
	}) // NaN is last
	return list
}

// String is the table for a person.
func (r Result) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "trial\tsettings\tjudged at\tsteps\t%s\n", r.Scores)
	for _, t := range r.ranked() {
		score := fmt.Sprintf("%.4f", t.Score)
		if t.Failed != "" {
			score = cli.Cut("failed: "+cli.Printable(t.Failed), 80)
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\n", t.Trial, words(t.Settings), t.Rung, t.Steps, score)
	}
	_ = w.Flush() // it writes to memory
	fmt.Fprintf(&b, "Best: %s, with %s %.4f. %s of %s in %.1f s.\n", words(r.Best.Settings), r.Scores, r.Best.Score,
		cli.Plural(uint64(r.StepsTotal), "step"), cli.Plural(uint64(r.Peers), "peer"), r.Seconds)
	if r.PeersLost > 0 {
		fmt.Fprintf(&b, "%s lost on the way.\n", cli.Plural(uint64(r.PeersLost), "peer"))
	}
	if r.Out != "" {
		fmt.Fprintf(&b, "The best is in %s, for --config.\n", r.Out)
	}
	return b.String()
}

// words is a setting for a person.
func words(s search.Setting) string {
	return strings.NewReplacer(`"`, "", "{", "", "}", "", ",", " ").Replace(s.String())
}

func scoreOf(o search.Outcome) string {
	if o.Failed != "" {
		return "failed: " + cli.Printable(o.Failed)
	}
	return fmt.Sprintf("%.4f", o.Score)
}

// maxNamed bounds the trials that a picture names.
const maxNamed = 8

// draw draws the score of each trial by its steps, the best of them named.
func (r Result) draw(path string) error {
	var curves []compare.Curve
	for i, t := range r.ranked() {
		c := compare.Curve{Name: fmt.Sprintf("%d: %s", t.Trial, words(t.Settings))}
		if i >= maxNamed {
			c.Name = ""
		}
		for _, p := range t.Curve {
			c.Points = append(c.Points, plotter.XY{X: float64(p.Steps), Y: p.Score})
		}
		if len(c.Points) == 1 { // a short line is seen
			p := c.Points[0]
			c.Points = plotter.XYs{{X: 0.97 * p.X, Y: p.Y}, {X: p.X, Y: p.Y}}
		}
		curves = append(curves, c)
	}
	panel, err := compare.Panel("", "steps of each member", r.Scores, curves)
	if err != nil {
		return err
	}
	return compare.Draw(path, fmt.Sprintf("%s, %s", r.Method, cli.Plural(uint64(len(r.Trials)), "setting")),
		fmt.Sprintf("best: %s with %.4f; %d steps in all", words(r.Best.Settings), r.Best.Score, r.StepsTotal), [][]*plot.Plot{{panel}})
}

// keep writes the picture and the best setting.
func (s *sought) keep(r *Result, out, picture string) error {
	var faults []error
	if out != "" {
		command := "run"
		given := s.all(r.Best.Settings)
		if s.Fit != nil {
			command = "fit"
		}
		for name, values := range s.resource(s.config.Steps) {
			given[name] = values
		}
		head := fmt.Sprintf("# the best of %s, with %s %.4f: gossipnode %s --config %s\n", cli.Plural(uint64(len(r.Trials)), "setting"), r.Scores, r.Best.Score, command, filepath.Base(out))
		if err := writeConfig(out, head, given); err != nil {
			faults = append(faults, fmt.Errorf("writing the best settings: %w", err))
		} else {
			r.Out = out
		}
	}
	if picture != "" {
		if err := r.draw(picture); err != nil {
			faults = append(faults, err)
		} else {
			r.Plot = picture
		}
	}
	return errors.Join(faults...)
}
