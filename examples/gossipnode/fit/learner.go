package fit

import (
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// learnerOptions are the settings of all learners; each takes its own.
type learnerOptions struct {
	Name                 string
	Trees, Leaves, Depth int
	LeafRows             int
	Rate, Penalty, L1    float64
	Clusters, Components int
	Seed                 uint64
}

// preparation is what has to be done to columns before a learner can use them.
type preparation uint8

const (
	// numbers: what is missing is the mean, with a column that tells so; columns have mean 0
	// and variance 1; categories are columns of 0 and 1.
	numbers preparation = iota
	// counts: the same, from 0 to 1.
	counts
	// asTheyAre: numbers and what is missing stay, and categories are numbered alike.
	asTheyAre
)

// pipeline is the stages for columns, as a batch has them; values of categories with fewer rows
// than floor count as one.
func (p preparation) pipeline(columns *table.Batch, floor float64) *prepare.Pipeline {
	made := &prepare.Pipeline{}
	for _, c := range columns.Columns {
		made.Input.Fields = append(made.Input.Fields, table.Field{Name: c.Name, Kind: c.Kind})
	}
	switch p { // what tells that a value is missing comes after scaling, and stays 0 or 1
	case numbers:
		made.Stages = []table.Stage{&prepare.Standardize{}, &prepare.Impute{Indicator: true}, &prepare.OneHot{Floor: floor}}
	case counts:
		made.Stages = []table.Stage{&prepare.MinMax{}, &prepare.Impute{Indicator: true}, &prepare.OneHot{Floor: floor}}
	case asTheyAre:
		made.Stages = []table.Stage{&prepare.Codes{Floor: floor}}
	}
	return made
}

// learner is one that --learner names.
type learner struct {
	name    string
	prepare preparation
	// target: "" is none, else "number", "class" or "any".
	target string
	make   func(o learnerOptions) learn.Learner
}

const (
	wantsNumber = "a number"
	wantsClass  = "classes"
	wantsAny    = "a number or classes"
)

func learners() []learner {
	logistic := func(o learnerOptions) learn.Learner { return &learn.Logistic{C: 1 / o.Penalty, L1Ratio: o.L1} }
	return []learner{
		{"logistic", numbers, wantsClass, logistic},
		{"softmax", numbers, wantsClass, logistic},
		// Columns of one category add up to 1: a trace of a ridge shares out among them.
		{"linear", numbers, wantsAny, func(learnerOptions) learn.Learner { return &learn.Linear{Ridge: 1e-3} }},
		{"ridge", numbers, wantsAny, func(o learnerOptions) learn.Learner { return &learn.Linear{Ridge: o.Penalty} }},
		{"svm", numbers, wantsClass, func(o learnerOptions) learn.Learner { return &learn.LinearSVM{C: 1 / o.Penalty} }},
		{"gaussian-nb", numbers, wantsClass, func(learnerOptions) learn.Learner { return &learn.GaussianNB{} }},
		{"multinomial-nb", counts, wantsClass, func(learnerOptions) learn.Learner { return &learn.MultinomialNB{} }},
		{"bernoulli-nb", numbers, wantsClass, func(learnerOptions) learn.Learner { return &learn.BernoulliNB{} }},
		{"tree", asTheyAre, wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Tree{Depth: o.Depth, Leaves: o.Leaves, MinRows: o.LeafRows}
		}},
		{"forest", asTheyAre, wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Forest{Trees: o.Trees, Depth: o.Depth, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"boost", asTheyAre, wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Boost{Trees: o.Trees, Leaves: o.Leaves, Depth: o.Depth, Rate: o.Rate, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"kmeans", numbers, "", func(o learnerOptions) learn.Learner { return learn.KMeans{Clusters: o.Clusters, Seed: o.Seed} }},
		{"pca", numbers, "", func(o learnerOptions) learn.Learner { return learn.PCA{Components: o.Components, Seed: o.Seed} }},
	}
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

func (o learnerOptions) hasTarget() bool { return o.chosen().target != "" }

// faults says which settings no learner can have.
func (o learnerOptions) faults() error {
	var faults cli.Faults
	for _, f := range []struct {
		flag         string
		value, least int
	}{
		{"trees", o.Trees, 1}, {"leaves", o.Leaves, 0}, {"depth", o.Depth, 0}, {"leaf-rows", o.LeafRows, 1}, {"clusters", o.Clusters, 1}, {"components", o.Components, 0},
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
func (l learner) fits(classes []string) error {
	is := wantsNumber
	if classes != nil {
		is = wantsClass
	}
	if l.target == is || l.target == wantsAny {
		return nil
	}
	return cli.Usage(cli.Faultf("target", "is %s, but %s learns %s: %s", is, l.name, l.target, map[string]string{
		wantsNumber: "give a comparison, such as 'arr_delay>15'", wantsClass: "give a column of numbers",
	}[is]))
}
