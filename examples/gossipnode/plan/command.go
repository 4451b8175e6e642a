// Package plan is the command plan: it reads tasks and members from a file of at most maxFile bytes, says who would do
// what, and draws it. Read command.go for the output, then file.go and gantt.go.
package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/plan"
)

const maxNamed = 3 // members that are named for a task

// Command makes the command plan.
func Command(std cli.Streams) *cobra.Command {
	out, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "plan TASKS.yaml",
		Short: "Say who would do which task, and whether deadlines can be kept",
		Long: `Plan reads tasks and members from a YAML file, and prints who does what and when; nothing
is done. It makes small

  weights.time·(longest time) - weights.accuracy·accuracy - weights.resource·resource

where accuracy is what the curves of tasks promise, and resource the share of the time for
which members are busy. The file has three keys, here with all that they can have:

  weights: {time: 1, accuracy: 0, resource: 0}     # the default
  members:
    - {name: anna, speed: 800, memory: 4e9, link: 1e8, from: 0}
  tasks:
    - name: monday
      kind: epoch          # divided among members; a fit or an evaluation is not
      samples: 60000
      most: 120000         # may be done, as the curve says what they gain
      cost: 1              # work for a sample: speed is work in a second
      bytes: 784           # of a sample, which a member other than the holder loads
      holder: anna
      memory: 1e9
      arrival: 0           # times in seconds
      deadline: 60
      seen: 0              # samples that the model knows already; points are measured, a loss is negated
      curve: [{samples: 1000, accuracy: 0.71}, {samples: 4000, accuracy: 0.83}, {samples: 16000, accuracy: 0.9}]

Bound is a time that no plan can beat, deadlines aside. If not all deadlines can be kept,
the plan misses the worst by the least that was found, and the exit code is 1.`,
		Example: `  gossipnode plan examples/gossipnode/plan/example.yaml
  gossipnode plan TASKS.yaml --out plan.svg
  gossipnode plan TASKS.yaml --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("plan takes one file of tasks, and %d are given", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if ext := filepath.Ext(out); out != "" && ext != ".svg" && ext != ".png" {
				return cli.Usagef("--out %q: want a name that ends in .png or .svg", out)
			}
			return show(args[0], out, asJSON, std)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`file` to draw the plan into, as .png or .svg")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan as one JSON object, the last line of standard output")
	return cmd
}

func show(file, out string, asJSON bool, std cli.Streams) error {
	state, err := Read(file)
	if err != nil {
		return cli.Usagef("reading the tasks: %s: %w", file, err)
	}
	p, err := plan.Make(state)
	if err != nil {
		return fmt.Errorf("planning %s: %w", file, err)
	}
	if out != "" {
		if err := draw(p, out); err != nil {
			return fmt.Errorf("drawing the plan: %w", err)
		}
	}
	if err := cli.Print(report{p}, asJSON, std); err != nil || p.Feasible {
		return err
	}
	var why []string
	for _, l := range p.Late {
		why = append(why, fmt.Sprintf("task %q misses its deadline at %.4g s by %.4g s", l.Task, l.Deadline, l.By))
	}
	for _, name := range p.Nobody {
		why = append(why, fmt.Sprintf("task %q needs more memory than any member has", name))
	}
	return fmt.Errorf("not all can be done in time: %s", strings.Join(why, "; "))
}

// report is the output: a table for a person, all of the plan as JSON.
type report struct{ *plan.Plan }

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %.4g s, and no plan is shorter than %.4g s\n",
		cli.Plural(uint64(len(r.State.Tasks)), "task"), cli.Plural(uint64(len(r.State.Members)), "member"), r.Makespan, r.Bound)
	fmt.Fprintf(&b, "  members are busy for %.1f %% of that time", 100*r.Resource)
	if slices.ContainsFunc(r.State.Tasks, func(t plan.Task) bool { return len(t.Curve) > 0 }) {
		fmt.Fprintf(&b, "; tasks with curves come to %.4f in the mean", r.Accuracy)
	}
	b.WriteString("\n\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "task\tkind\tsamples\tstart, s\tend, s\tdeadline, s\tby")
	for _, t := range r.State.Tasks {
		fmt.Fprintln(w, r.row(t))
	}
	_ = w.Flush() // it writes to memory
	return b.String()
}

// row is the line of a task.
func (r report) row(t plan.Task) string {
	var members []string
	samples, start, end := 0, 0.0, 0.0
	for _, a := range r.Assignments {
		if a.Task == t.Name {
			if samples == 0 {
				start = a.Start
			}
			samples, end = samples+a.Samples, max(end, a.End)
			if name := cli.Printable(a.Member); !slices.Contains(members, name) {
				members = append(members, name)
			}
		}
	}
	deadline := ""
	if t.Deadline > 0 {
		deadline = fmt.Sprintf("%.4g", t.Deadline)
		if end > t.Deadline {
			deadline += fmt.Sprintf(", missed by %.4g", end-t.Deadline)
		}
	}
	if more := len(members) - maxNamed; more > 0 {
		members = append(members[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	if samples == 0 {
		members = []string{"nobody, for lack of memory"}
	}
	return fmt.Sprintf("%s\t%s\t%d\t%.4g\t%.4g\t%s\t%s", cli.Printable(t.Name), t.Kind, samples, start, end, deadline, strings.Join(members, ", "))
}
