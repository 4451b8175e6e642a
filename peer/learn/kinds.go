package learn

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// modelKind names a type of model in a file and on the wire, where the name stays as it is.
type modelKind struct {
	name string
	make func() Model // a pointer, to read into
}

// modelKinds are all models that can be saved. A model whose numbers can contradict one
// another has a method check, which is called on what was read.
func modelKinds() []modelKind {
	return []modelKind{
		{"linear", func() Model { return new(LinearModel) }},
		{"linear-classes", func() Model { return new(LinearClassModel) }},
		{"logistic", func() Model { return new(LogisticModel) }},
		{"svm", func() Model { return new(SVMModel) }},
		{"gaussian-nb", func() Model { return new(GaussianNBModel) }},
		{"count-nb", func() Model { return new(CountNBModel) }},
		{"ensemble", func() Model { return new(EnsembleModel) }},
		{"kmeans", func() Model { return new(KMeansModel) }},
		{"pca", func() Model { return new(PCAModel) }},
		{"als", func() Model { return new(ALSModel) }},
		{"trees", func() Model { return new(TreeModel) }},
	}
}

// checker is a model that can be read whole and still be none: its lists have unequal lengths.
type checker interface{ check() error }

// typedModel is a model with its kind, as files and members of an ensemble write it.
type typedModel struct {
	Kind  string          `json:"kind"`
	Model json.RawMessage `json:"model"`
}

func encodeModel(m Model) (typedModel, error) {
	for _, kind := range modelKinds() {
		if reflect.TypeOf(kind.make()) != reflect.TypeOf(m) {
			continue
		}
		content, err := json.Marshal(m)
		if err != nil {
			return typedModel{}, fmt.Errorf("learn: writing a model of kind %s: %w", kind.name, err)
		}
		return typedModel{kind.name, content}, nil
	}
	return typedModel{}, fmt.Errorf("%w: %T cannot be saved", ErrModelKind, m)
}

// decode reads a model, and trusts none of it.
func (t typedModel) decode() (Model, error) {
	for _, kind := range modelKinds() {
		if kind.name != t.Kind {
			continue
		}
		m := kind.make()
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
	return nil, fmt.Errorf("%w: %q; it may be of a newer release", ErrModelKind, t.Kind)
}
