package fit

import (
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// learnerOptions are the settings of all learners; each takes its own.
type learnerOptions struct {
	Name                 string
	Trees, Leaves, Depth int
	LeafRows             int
	Rate, Penalty, L1    float64
	Clusters, Components int
	User, Item           string
	Factors              int
	Apart                string
	Folds                int
	Seed                 uint64
}

// learner is one that --learner names.
type learner struct {
	name string
	// target: "" is none, else "number", "class" or "any".
	target string
	make   func(o learnerOptions) learn.Learner
}

const (
	wantsNumber = "a number"
	wantsClass  = "classes"
	wantsAny    = "a number or classes"
)

// ratings is the learner of ratings that users give to items.
const ratings = "als"

func learners() []learner {
	logistic := func(o learnerOptions) learn.Learner { return &learn.Logistic{C: 1 / o.Penalty, L1Ratio: o.L1} }
	return []learner{
		{"logistic", wantsClass, logistic},
		{"softmax", wantsClass, logistic},
		// Columns of one category add up to 1: a trace of a ridge shares out among them.
		{"linear", wantsAny, func(learnerOptions) learn.Learner { return &learn.Linear{Ridge: 1e-3} }},
		{"ridge", wantsAny, func(o learnerOptions) learn.Learner { return &learn.Linear{Ridge: o.Penalty} }},
		{"svm", wantsClass, func(o learnerOptions) learn.Learner { return &learn.LinearSVM{C: 1 / o.Penalty} }},
		{"gaussian-nb", wantsClass, func(learnerOptions) learn.Learner { return &learn.GaussianNB{} }},
		{"multinomial-nb", wantsClass, func(learnerOptions) learn.Learner { return &learn.MultinomialNB{} }},
		{"bernoulli-nb", wantsClass, func(learnerOptions) learn.Learner { return &learn.BernoulliNB{} }},
		{"tree", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Tree{Depth: o.Depth, Leaves: o.Leaves, MinRows: o.LeafRows}
		}},
		{"forest", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Forest{Trees: o.Trees, Depth: o.Depth, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"boost", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Boost{Trees: o.Trees, Leaves: o.Leaves, Depth: o.Depth, Rate: o.Rate, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"kmeans", "", func(o learnerOptions) learn.Learner { return learn.KMeans{Clusters: o.Clusters, Seed: o.Seed} }},
		{"pca", "", func(o learnerOptions) learn.Learner { return learn.PCA{Components: o.Components, Seed: o.Seed} }},
		{ratings, wantsNumber, func(o learnerOptions) learn.Learner {
			return learn.ALS{User: o.User, Item: o.Item, Factors: o.Factors, Seed: o.Seed}
		}},
	}
}

// combinations are those of models that were fitted apart.
func combinations() []string {
	return []string{string(learn.Average), string(learn.Vote), string(learn.Stack), string(learn.MeanCoefficients)}
}

func learnerNames() (names []string) {
	for _, l := range learners() {
		names = append(names, l.name)
	}
	return names
}

// chosen is the learner of --learner.
func (o learnerOptions) chosen() learner {
	for _, l := range learners() {
		if l.name == o.Name {
			return l
		}
	}
	return learner{}
}

// parts are those of --folds.
func (o learnerOptions) parts() ([]table.Split, error) {
	return table.ParseFolds(fmt.Sprintf("fold:%d", o.Folds))
}

func (o learnerOptions) hasTarget() bool { return o.chosen().target != "" }

// faults says which settings no learner can have.
func (o learnerOptions) faults() error {
	var faults cli.Faults
	for _, f := range []struct {
		flag         string
		value, least int
	}{
		{"trees", o.Trees, 1}, {"leaves", o.Leaves, 0}, {"depth", o.Depth, 0}, {"leaf-rows", o.LeafRows, 0}, {"clusters", o.Clusters, 1}, {"components", o.Components, 0}, {"factors", o.Factors, 1},
	} {
		faults.If(f.value < f.least, f.flag, "%d: want %d or more", f.value, f.least)
	}
	faults.If(!(o.Rate > 0), "rate", "%g: want a positive number", o.Rate)
	faults.If(!(o.Penalty > 0), "penalty", "%g: want a positive number", o.Penalty)
	faults.If(!(o.L1 >= 0 && o.L1 <= 1), "l1", "%g: want 0 to 1", o.L1)
	if len(faults) == 0 {
		return nil
	}
	return faults[0]
}

// fits says whether a target is of what the learner learns.
func (l learner) fits(labels *table.Labels) error {
	is := wantsNumber
	if labels != nil && labels.Classes != nil {
		is = wantsClass
	}
	if labels == nil || l.target == is || l.target == wantsAny {
		return nil
	}
	return cli.Usage(cli.Faultf("target", "is %s, but %s learns %s: %s", is, l.name, l.target, map[string]string{
		wantsNumber: "give a comparison, such as 'arr_delay>15', or a learner of numbers, such as --learner linear", wantsClass: "give a column of numbers",
	}[is]))
}
