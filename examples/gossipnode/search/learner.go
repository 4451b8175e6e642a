package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/fit"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/search"
	"github.com/seed-97356399/murmuration/peer/table"
)

// learner fits learners to tables, as fit does. Steps are trees or iterations; a learner begins anew at each rung.
type learner struct {
	of   *fit.Trial // has the files
	unit string     // the flag whose value the steps are
}

func (*learner) flags() *pflag.FlagSet { return fit.Flags() }
func (l *learner) withheld() []string {
	if l.unit == "" {
		return nil
	}
	return []string{l.unit}
}

func (*learner) fixed() []string {
	return []string{"learner", "data", "target", "drop", "split", "format", "memory", "on-disk", "tolerance", "distinct", "user", "item", "text"}
}
func (*learner) anew() bool     { return true }
func (*learner) scores() string { return "score" }

func (l *learner) resource(steps int) map[string][]string {
	if l.unit == "" {
		return nil
	}
	return map[string][]string{l.unit: {fmt.Sprint(steps)}}
}

func (l *learner) fault(given map[string][]string, c search.Config) error {
	trial, err := fit.NewTrial(given)
	if err != nil {
		return err
	}
	if l.of == nil {
		l.of = trial
	}
	_, sought := given[trial.Resource()]
	switch {
	case !trial.Scored():
		return errors.New("this learner has no score on held-out rows that could be compared: want one with a target")
	case sought && c.Steps != 1:
		return fmt.Errorf("%s are given, so a trial is one step: give steps: 1 and no least", trial.Resource())
	case trial.Resource() == "" && c.Steps != 1:
		return errors.New("this learner is fitted in one step: give steps: 1 and no least")
	case !sought:
		l.unit = trial.Resource()
	}
	return nil
}

func (l *learner) open(ctx context.Context, _ map[string][]string, _ int) error {
	return l.of.Open(ctx)
}

func (l *learner) train(ctx context.Context, j slice) (o search.Outcome, _ []byte, err error) {
	for name, values := range l.resource(j.To) {
		j.given[name] = values
	}
	trial, err := fit.NewTrial(j.given)
	if err != nil {
		return o, nil, err
	}
	began, number, peers := time.Now(), 0, 1
	if j.shared {
		number, peers = j.number, len(j.Members)
	}
	var flock table.Flock = table.Alone{}
	if len(j.Members) > 1 {
		node, err := peer.Join(ctx, j.network)
		if err != nil {
			return o, nil, err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		bounded, cancel := context.WithTimeout(ctx, metBy)
		defer cancel()
		if err := node.WaitMembers(bounded, len(j.Members)); err != nil && ctx.Err() != nil {
			return o, nil, err
		}
		flock = node
	}
	score, err := trial.Score(ctx, l.of, flock, number, peers)
	o = search.Outcome{Score: score, Spent: j.To, Seconds: time.Since(began).Seconds()}
	if errors.Is(err, learn.ErrSettings) || errors.Is(err, learn.ErrSingular) { // the trial's fault, at all of its members
		o.Failed = cli.Cut(err.Error(), maxWhy)
		return o, nil, nil
	}
	if err != nil {
		return o, nil, err
	}
	j.made(j.To)
	o.Curve = []search.Point{{Steps: j.To, Score: score}}
	return o, nil, nil
}
