package fit

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/learn"
	"github.com/seed-97356399/murmuration/peer/table"
)

// learnerOptions are the settings of all learners; each learner uses its own.
type learnerOptions struct {
	Name string
	treeOptions
	Penalty, L1          float64
	Clusters, Components int
	User, Item           string
	Factors              int
	Confidence           float64
	Text                 string
	Topics, Iterations   int
	Smoothing, Floor     float64
	Apart                string
	Folds                int
	Seed                 uint64
}

// treeOptions are the settings of tree, forest and boost.
type treeOptions struct {
	Trees, Leaves, Depth, LeafRows int
	Rate                           float64
}

// learner is a value of --learner.
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
	mayNumber   = "a number or nothing"
)

// The learners that need columns with a meaning: ratings of items by users, how often users had items, and texts.
const (
	ratings     = "als"
	preferences = "implicit-als"
	topics      = "lda"
)

// iterating and smoothing list the learners that use --iterations and --smoothing.
var (
	iterating = []string{"logistic", "softmax", "svm", "kmeans", ratings, preferences, topics}
	smoothing = []string{"gaussian-nb", "multinomial-nb", "bernoulli-nb", topics}
)

func learners() []learner {
	logistic := func(o learnerOptions) learn.Learner {
		return &learn.Logistic{C: 1 / o.Penalty, L1Ratio: o.L1, Iterations: o.Iterations}
	}
	return []learner{
		{"logistic", wantsClass, logistic},
		{"softmax", wantsClass, logistic},
		// Columns of one category add up to 1: a small ridge divides the weight among them.
		{"linear", wantsAny, func(learnerOptions) learn.Learner { return &learn.Linear{Ridge: 1e-3} }},
		{"ridge", wantsAny, func(o learnerOptions) learn.Learner { return &learn.Linear{Ridge: o.Penalty} }},
		{"svm", wantsClass, func(o learnerOptions) learn.Learner {
			return &learn.LinearSVM{C: 1 / o.Penalty, Iterations: o.Iterations}
		}},
		{"gaussian-nb", wantsClass, func(o learnerOptions) learn.Learner { return &learn.GaussianNB{Smoothing: o.Smoothing} }},
		{"multinomial-nb", wantsClass, func(o learnerOptions) learn.Learner { return &learn.MultinomialNB{Alpha: o.Smoothing} }},
		{"bernoulli-nb", wantsClass, func(o learnerOptions) learn.Learner { return &learn.BernoulliNB{Alpha: o.Smoothing} }},
		{"tree", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Tree{Depth: o.Depth, Leaves: o.Leaves, MinRows: o.LeafRows}
		}},
		{"forest", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Forest{Trees: o.Trees, Depth: o.Depth, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"boost", wantsAny, func(o learnerOptions) learn.Learner {
			return learn.Boost{Trees: o.Trees, Leaves: o.Leaves, Depth: o.Depth, Rate: o.Rate, MinRows: o.LeafRows, Seed: o.Seed}
		}},
		{"kmeans", "", func(o learnerOptions) learn.Learner {
			return learn.KMeans{Clusters: o.Clusters, Iterations: o.Iterations, Seed: o.Seed}
		}},
		{"pca", "", func(o learnerOptions) learn.Learner { return learn.PCA{Components: o.Components, Seed: o.Seed} }},
		{ratings, wantsNumber, func(o learnerOptions) learn.Learner {
			return learn.ALS{User: o.User, Item: o.Item, Factors: o.Factors, Rounds: o.Iterations, Seed: o.Seed}
		}},
		{preferences, mayNumber, func(o learnerOptions) learn.Learner {
			return learn.ALS{User: o.User, Item: o.Item, Factors: o.Factors, Rounds: o.Iterations, Seed: o.Seed, Implicit: true, Alpha: o.Confidence}
		}},
		{topics, "", func(o learnerOptions) learn.Learner {
			return learn.LDA{Text: o.Text, Topics: o.Topics, Iterations: o.Iterations, WordPrior: o.Smoothing, Floor: o.Floor, Seed: o.Seed}
		}},
	}
}

// combinations returns the ways to combine models that were fitted separately.
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

// parts returns the folds of --folds.
func (o learnerOptions) parts() ([]table.Split, error) {
	return table.ParseFolds(fmt.Sprintf("fold:%d", o.Folds))
}

func (o learnerOptions) hasTarget() bool { return o.chosen().target != "" }

// columns are the columns whose meaning the learner needs, nil if it takes any.
func (o learnerOptions) columns() []string {
	switch o.Name {
	case ratings, preferences:
		return []string{o.User, o.Item}
	case topics:
		return []string{o.Text}
	}
	return nil
}

// faults returns the errors that no learner allows.
func (o learnerOptions) faults() error {
	var faults cli.Faults
	for _, f := range []struct {
		flag         string
		value, least int
	}{
		{"trees", o.Trees, 1}, {"leaves", o.Leaves, 0}, {"depth", o.Depth, 0}, {"leaf-rows", o.LeafRows, 0}, {"clusters", o.Clusters, 1}, {"components", o.Components, 0}, {"factors", o.Factors, 1}, {"topics", o.Topics, 1}, {"iterations", o.Iterations, 0},
	} {
		faults.If(f.value < f.least, f.flag, "%d: want %d or more", f.value, f.least)
	}
	faults.If(!(o.Rate > 0), "rate", "%g: want a positive number", o.Rate)
	faults.If(!(o.Penalty > 0), "penalty", "%g: want a positive number", o.Penalty)
	faults.If(!(o.Confidence > 0 && o.Confidence <= math.MaxFloat64), "confidence", "%g: want a positive number", o.Confidence)
	faults.If(!(o.Smoothing >= 0 && o.Smoothing <= math.MaxFloat64), "smoothing", "%g: want a positive number, or 0 for the learner's own", o.Smoothing)
	faults.If(o.Iterations > 0 && !slices.Contains(iterating, o.Name), "iterations", "is for %s: leave it out for %s", cli.List(iterating), o.Name)
	faults.If(o.Smoothing > 0 && !slices.Contains(smoothing, o.Name), "smoothing", "is for %s: leave it out for %s", cli.List(smoothing), o.Name)
	faults.If(!(o.L1 >= 0 && o.L1 <= 1), "l1", "%g: want 0 to 1", o.L1)
	if len(faults) == 0 {
		return nil
	}
	return faults[0]
}

// fits returns an error if the learner cannot learn a target.
func (l learner) fits(labels *table.Labels) error {
	is := wantsNumber
	if labels != nil && labels.Classes != nil {
		is = wantsClass
	}
	if labels == nil || l.target == is || l.target == wantsAny || l.target == mayNumber && is == wantsNumber {
		return nil
	}
	return cli.Usage(cli.Faultf("target", "is %s, but %s learns %s: %s", is, l.name, l.target, map[string]string{
		wantsNumber: "give a comparison, such as 'arr_delay>15', or a learner of numbers, such as --learner linear", wantsClass: "give a column of numbers",
	}[is]))
}
