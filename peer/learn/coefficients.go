package learn

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Coefficients are weights of columns: output o is Intercept[o] plus the sum of
// Weights[o][c] times the column Columns[c].
type Coefficients struct {
	Columns   []string    `json:"columns"`
	Intercept []float64   `json:"intercept"`
	Weights   [][]float64 `json:"weights"`
}

func (c *Coefficients) check() error {
	if len(c.Intercept) == 0 || len(c.Weights) != len(c.Intercept) {
		return fmt.Errorf("%d intercepts and %d rows of weights", len(c.Intercept), len(c.Weights))
	}
	for _, weights := range c.Weights {
		if len(weights) != len(c.Columns) {
			return fmt.Errorf("%d weights for %d columns", len(weights), len(c.Columns))
		}
	}
	if err := table.DistinctNames(c.Columns); err != nil { // older releases fitted columns with equal names
		return err
	}
	return checkFinite(append(c.Weights[:len(c.Weights):len(c.Weights)], c.Intercept)...)
}

// apply appends the outputs of each row to dst. It returns an error if one is no finite number.
func (c *Coefficients) apply(dst []float64, features *table.Batch) ([]float64, error) {
	k, first := len(c.Intercept), len(dst)
	dst = slices.Grow(dst, k*features.Rows)
	for range features.Rows {
		dst = append(dst, c.Intercept...)
	}
	out := dst[first:]
	for j, name := range c.Columns {
		values, err := numbers(features, name, j)
		if err != nil {
			return dst[:first], err
		}
		if k == 1 {
			weight := c.Weights[0][j]
			for i, x := range values {
				out[i] += weight * x
			}
			continue
		}
		for i, x := range values {
			if x == 0 {
				continue
			}
			for o := range k {
				out[i*k+o] += c.Weights[o][j] * x
			}
		}
	}
	if i := slices.IndexFunc(out, missing); i >= 0 {
		return dst[:first], fmt.Errorf("learn: predicting: row %d has numbers that are %w", features.Key(i/k), table.ErrNumbers)
	}
	return dst, nil
}

// numbers finds a column of finite numbers by its name, and looks at place near first.
func numbers(b *table.Batch, name string, near int) ([]float64, error) {
	column := b.FindNear(name, near)
	if column == nil {
		return nil, fmt.Errorf("learn: there is no column %q, which the model needs", name)
	}
	return column.Numbers, checkNumbers(b, column)
}

func checkNumbers(b *table.Batch, column *table.Column) error {
	if column.Kind != table.Number {
		return fmt.Errorf("learn: column %q is of categories; make numbers of it (one-hot) first", column.Name)
	}
	if len(column.Numbers) != b.Rows {
		return fmt.Errorf("learn: column %q has %d numbers for %d rows", column.Name, len(column.Numbers), b.Rows)
	}
	if i := slices.IndexFunc(column.Numbers, missing); i >= 0 {
		return fmt.Errorf("learn: column %q has %v in row %d; impute what is missing first, or drop the column", column.Name, column.Numbers[i], b.Key(i))
	}
	return nil
}

// LogisticModel gives probabilities of classes by weighted sums of columns. With one row of weights, the sum is the
// logarithm of the odds of class 1 of two; with more, each class has a row.
type LogisticModel struct {
	Coefficients
	Descent
}

// Outputs is the number of classes.
func (m *LogisticModel) Outputs() int { return max(len(m.Intercept), 2) }

// Predict appends a probability for each class for each row.
func (m *LogisticModel) Predict(dst []float64, features *table.Batch) ([]float64, error) {
	margins, err := m.apply(nil, features)
	if err != nil {
		return dst, err
	}
	for p := range slices.Chunk(margins, len(m.Intercept)) {
		if len(p) == 1 {
			p = []float64{sigmoid(-p[0]), sigmoid(p[0])}
		} else {
			softmax(p)
		}
		dst = append(dst, p...)
	}
	return dst, nil
}

// sigmoid is the probability that belongs to the logarithm of odds.
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

// softmax replaces logarithms of probabilities, up to a common constant, by the probabilities, and returns the
// logarithm of their sum.
func softmax(p []float64) float64 {
	highest, sum := slices.Max(p), 0.0
	for i := range p {
		p[i] = math.Exp(p[i] - highest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return highest + math.Log(sum)
}

var errNoFeatures = errors.New("learn: there are no features; a member without rows has a batch of its columns all the same")
