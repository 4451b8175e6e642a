package learn

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/peer/table/prepare"
)

// Learners are the learners of this package, by their names in task files, except Ensemble, which holds another
// learner.
func Learners() table.Kinds[Learner] {
	return table.Kinds[Learner]{
		"als":            func() Learner { return new(ALS) },
		"bernoulli-nb":   func() Learner { return new(BernoulliNB) },
		"boost":          func() Learner { return new(Boost) },
		"forest":         func() Learner { return new(Forest) },
		"gaussian-nb":    func() Learner { return new(GaussianNB) },
		"kmeans":         func() Learner { return new(KMeans) },
		"lda":            func() Learner { return new(LDA) },
		"linear":         func() Learner { return new(Linear) },
		"logistic":       func() Learner { return new(Logistic) },
		"multinomial-nb": func() Learner { return new(MultinomialNB) },
		"pca":            func() Learner { return new(PCA) },
		"svm":            func() Learner { return new(LinearSVM) },
		"tree":           func() Learner { return new(Tree) },
	}
}

// taskContent is a task as JSON.
type taskContent struct {
	prepare.Plan
	Pipeline *prepare.Pipeline `json:"pipeline,omitempty"` // its stages, if they are not the usual ones
	Usual    prepare.Usual     `json:"usual"`
	Learner  struct {
		Kind     string          `json:"kind"`
		Settings json.RawMessage `json:"settings,omitempty"`
	} `json:"learner"`
}

// MarshalTask writes a task as JSON, for a service that keeps it in a file. Settings and Check are not written.
func (k Kinds) MarshalTask(t Task) ([]byte, error) {
	c := taskContent{Plan: t.Plan, Usual: t.Usual}
	if t.Stages != nil {
		c.Pipeline = &prepare.Pipeline{Stages: t.Stages, Kinds: k.Stages}
	}
	if c.Learner.Kind = k.Learners.Or(Learners).NameOf(t.Learner); c.Learner.Kind == "" {
		return nil, fmt.Errorf("learn: writing a task: %T is none of the learners: give Kinds that have it", t.Learner)
	}
	var err error
	if c.Learner.Settings, err = json.Marshal(t.Learner); err != nil {
		return nil, fmt.Errorf("learn: writing the settings of %s: %w", c.Learner.Kind, err)
	}
	return json.Marshal(c)
}

// UnmarshalTask reads a task written by MarshalTask or by hand.
func (k Kinds) UnmarshalTask(data []byte) (Task, error) {
	c := taskContent{Pipeline: &prepare.Pipeline{Kinds: k.Stages}}
	if err := json.Unmarshal(data, &c); err != nil {
		return Task{}, fmt.Errorf("learn: reading a task: %w", err)
	}
	learners := k.Learners.Or(Learners)
	make := learners[c.Learner.Kind]
	if make == nil {
		return Task{}, fmt.Errorf("learn: reading a task: there is no learner %q: want one of %q", c.Learner.Kind, learners.Names())
	}
	t := Task{Plan: c.Plan, Usual: c.Usual, Learner: make()}
	t.Kinds = k.Stages
	if c.Pipeline != nil {
		t.Stages = c.Pipeline.Stages
	}
	if c.Learner.Settings != nil {
		if err := json.Unmarshal(c.Learner.Settings, t.Learner); err != nil {
			return Task{}, fmt.Errorf("learn: reading the settings of %s: %w", c.Learner.Kind, err)
		}
	}
	return t, nil
}
