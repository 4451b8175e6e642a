package learn

import (
	"encoding/json"
	"fmt"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Models are the models of this package by their names in files. A model whose numbers can contradict each other
// has a method check, which is called after reading.
func Models() table.Kinds[Model] {
	return table.Kinds[Model]{
		"linear":         func() Model { return new(LinearModel) },
		"linear-classes": func() Model { return new(LinearClassModel) },
		"logistic":       func() Model { return new(LogisticModel) },
		"svm":            func() Model { return new(SVMModel) },
		"gaussian-nb":    func() Model { return new(GaussianNBModel) },
		"count-nb":       func() Model { return new(CountNBModel) },
		"ensemble":       func() Model { return new(EnsembleModel) },
		"kmeans":         func() Model { return new(KMeansModel) },
		"pca":            func() Model { return new(PCAModel) },
		"als":            func() Model { return new(ALSModel) },
		"lda":            func() Model { return new(LDAModel) },
		"trees":          func() Model { return new(TreeModel) },
	}
}

// checker is a model that can contradict itself even though its JSON was read, for example by lists of unequal
// lengths.
type checker interface{ check() error }

// typedModel is a model with its kind, as files and members of an ensemble write it.
type typedModel struct {
	Kind  string          `json:"kind"`
	Model json.RawMessage `json:"model"`
}

func encodeModel(m Model, kinds table.Kinds[Model]) (typedModel, error) {
	kind := kinds.Or(Models).NameOf(m)
	if kind == "" {
		return typedModel{}, fmt.Errorf("%w: %T cannot be saved: give Kinds that have it", ErrModelKind, m)
	}
	content, err := json.Marshal(m)
	if err != nil {
		return typedModel{}, fmt.Errorf("learn: writing a model of kind %s: %w", kind, err)
	}
	return typedModel{kind, content}, nil
}

// decode reads a model and checks it.
func (t typedModel) decode(kinds table.Kinds[Model]) (Model, error) {
	make := kinds.Or(Models)[t.Kind]
	if make == nil {
		return nil, fmt.Errorf("%w: %q; it may be of a newer release", ErrModelKind, t.Kind)
	}
	m := make()
	if e, is := m.(*EnsembleModel); is {
		e.kinds = kinds
	}
	if err := json.Unmarshal(t.Model, m); err != nil {
		return nil, fmt.Errorf("%w: reading a model of kind %s: %w", ErrModelFile, t.Kind, err)
	}
	if c, ok := m.(checker); ok {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w: a model of kind %s: %w", ErrModelFile, t.Kind, err)
		}
	}
	return m, nil
}
