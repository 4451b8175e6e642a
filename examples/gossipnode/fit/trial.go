package fit

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/rows"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/table"
)

// Trial is a fit that a search tries settings of.
type Trial struct {
	options
	source *rows.Source
}

// Flags are the flags of fit that a search may give, with the values of these options.
func Flags() *pflag.FlagSet {
	return register(new(options))
}

func register(o *options) *pflag.FlagSet {
	all, some := pflag.NewFlagSet("fit", pflag.ContinueOnError), pflag.NewFlagSet("fit", pflag.ContinueOnError)
	o.register(all)
	all.VisitAll(func(f *pflag.Flag) {
		if topic := cli.Topic(f); topic == topicRows || topic == topicLearner {
			some.AddFlag(f)
		}
	})
	return some
}

// NewTrial makes a trial of a fit with these settings, each a list of a flag's values.
func NewTrial(given map[string][]string) (t *Trial, err error) {
	t = &Trial{}
	cmd := &cobra.Command{Use: "fit"}
	cmd.Flags().AddFlagSet(register(&t.options))
	t.options.Part, t.options.Peers = -1, 1
	cli.TakeFile(cmd.Flags())
	if err := cli.SetAll(cmd.Flags(), given); err != nil {
		return nil, err
	}
	return t, t.load(cmd, cli.Streams{})
}

// Resource is the flag whose value is how much a trial is trained, "" if the learner has none.
func (t *Trial) Resource() string {
	switch name := t.Learner.Name; {
	case name == "boost" || name == "forest":
		return "trees"
	case slices.Contains(iterating, name):
		return "iterations"
	}
	return ""
}

// Scored tells whether models have a score on held-out rows.
func (t *Trial) Scored() bool { return t.Learner.chosen().target != "" }

// Open opens the files, unless they are open.
func (t *Trial) Open(ctx context.Context) (err error) {
	if t.source == nil {
		t.source, err = rows.Open(ctx, t.Table, true)
	}
	return err
}

// Score fits, with the source of another trial, by sums over a flock, and returns how good the model is, more being better. Of peers members that share one
// source this is that with a number, from 0.
func (t *Trial) Score(ctx context.Context, of *Trial, flock table.Flock, number, peers int) (float64, error) {
	m := &member{options: t.options, number: number, source: of.source, tell: func(watch.Report) {}}
	m.Peers = peers
	done, _, err := m.work(ctx, flock)
	switch {
	case err != nil:
		return 0, rows.Remedied(err)
	case done.ClassScores != nil:
		return float64(done.AUC.Mean), nil
	case done.NumberScores != nil:
		return done.R2, nil
	case done.Rank != nil:
		return -*done.Rank, nil
	}
	return 0, cli.Usage(fmt.Errorf("a search needs a score on held-out rows, and --split %s holds out none: give another", t.Table.Split))
}
