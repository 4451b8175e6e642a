package learn

import (
	"encoding/json"
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

// EnsembleModel combines models that were fitted separately.
type EnsembleModel struct {
	Combine Combination
	Models  []Model
	Weights []float64 // of the models, by their rows
	Stacker Model     // of Stack; its inputs are the predictions of Models
	outputs int
	kinds   table.Kinds[Model] // of Models
}

// ensembleContent is an EnsembleModel as JSON.
type ensembleContent struct {
	Combine Combination  `json:"combine"`
	Models  []typedModel `json:"models"`
	Weights []float64    `json:"weights"`
	Stacker *typedModel  `json:"stacker,omitempty"`
	Outputs int          `json:"outputs"`
}

// MarshalJSON writes each model with its kind.
func (m *EnsembleModel) MarshalJSON() ([]byte, error) {
	content := ensembleContent{Combine: m.Combine, Weights: m.Weights, Outputs: m.outputs}
	for _, model := range m.Models {
		t, err := encodeModel(model, m.kinds)
		if err != nil {
			return nil, err
		}
		content.Models = append(content.Models, t)
	}
	if m.Stacker != nil {
		t, err := encodeModel(m.Stacker, m.kinds)
		if err != nil {
			return nil, err
		}
		content.Stacker = &t
	}
	return json.Marshal(content)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *EnsembleModel) UnmarshalJSON(data []byte) error {
	var content ensembleContent
	if err := json.Unmarshal(data, &content); err != nil {
		return err
	}
	*m = EnsembleModel{Combine: content.Combine, Weights: content.Weights, outputs: content.Outputs, kinds: m.kinds}
	for _, t := range content.Models {
		model, err := t.decode(m.kinds)
		if err != nil {
			return err
		}
		m.Models = append(m.Models, model)
	}
	var err error
	if content.Stacker != nil {
		m.Stacker, err = content.Stacker.decode(m.kinds)
	}
	return err
}

func (m *EnsembleModel) checkCombine() error {
	switch m.Combine {
	case Average, Stack, MeanCoefficients:
		return nil
	case Vote:
		if m.outputs > 1 {
			return nil
		}
		return fmt.Errorf("votes are for classes; combine numbers by %s", Average)
	}
	return fmt.Errorf("combination %q; want %s, %s, %s or %s", m.Combine, Average, Vote, Stack, MeanCoefficients)
}

func (m *EnsembleModel) check() error {
	if len(m.Models) == 0 || len(m.Weights) != len(m.Models) || m.outputs < 1 {
		return fmt.Errorf("%d models, %d weights, %d outputs", len(m.Models), len(m.Weights), m.outputs)
	}
	for _, model := range m.Models {
		if model.Outputs() != m.outputs {
			return fmt.Errorf("models of %d and %d outputs", model.Outputs(), m.outputs)
		}
	}
	if m.Combine == Stack && (m.Stacker == nil || m.Stacker.Outputs() != m.outputs) {
		return fmt.Errorf("no stacker of %d outputs", m.outputs)
	}
	return m.checkCombine()
}

// Outputs is the number of outputs of each model.
func (m *EnsembleModel) Outputs() int { return m.outputs }

// Predict appends Outputs numbers for each row.
func (m *EnsembleModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	if m.Combine == Stack {
		predictions, err := m.predictions(features)
		if err != nil {
			return dst, err
		}
		return m.Stacker.Predict(dst, predictions)
	}
	weights, k := m.Weights, m.outputs
	all := total(weights)
	sum := make([]float64, k*features.Rows)
	for o, model := range m.Models {
		p, err := model.Predict(nil, features)
		if err != nil {
			return dst, fmt.Errorf("learn: model %d of an ensemble: %w", o+1, err)
		}
		if m.Combine == Average {
			add(sum, ratio(weights[o], all), p)
			continue
		}
		for row := range features.Rows {
			sum[row*k+floats.MaxIdx(p[row*k:(row+1)*k])] += 1 / float64(len(m.Models))
		}
	}
	return append(dst, sum...), nil
}

// predictions returns the predictions of all models as columns. Of the probabilities of two classes only the last is
// a column, since both add up to 1.
func (m *EnsembleModel) predictions(features *table.Batch) (*table.Batch, error) {
	b := &table.Batch{Rows: features.Rows}
	for i, model := range m.Models {
		p, err := model.Predict(nil, features)
		if err != nil {
			return nil, fmt.Errorf("learn: model %d of an ensemble: %w", i+1, err)
		}
		columns := columnsOf(p, m.outputs, features.Rows, fmt.Sprintf("model %d output", i)).Columns
		if m.outputs == 2 {
			columns = columns[1:]
		}
		b.Columns = append(b.Columns, columns...)
	}
	return b, nil
}
