package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Combination is how the members' separate models are combined.
type Combination string

const (
	// Average is the mean of predictions, weighted by the rows of each model.
	Average Combination = "average"
	// Vote gives each class the share of models for which it is the most likely.
	Vote Combination = "vote"
	// Stack fits a regression (logistic for classes), by sums over the flock, on the
	// models' predictions for rows that none of them has seen.
	Stack Combination = "stack"
	// MeanCoefficients is one linear model with the mean coefficients of all, weighted by
	// their rows. It is for comparison; it is not the model of all rows.
	MeanCoefficients Combination = "mean-coefficients"
)

// stackShare is the share of the rows that the models to be stacked are not fitted on.
const stackShare = 0.2

// Ensemble fits one model at each member on its own rows, sends all models to all members, and combines them. A
// member that cannot fit a model (without rows, or with one class) contributes none.
type Ensemble struct {
	// Learner fits each member's model.
	Learner Learner `json:"learner"`
	// Combine is Average if empty.
	Combine Combination `json:"combine"`
	// Seed decides which rows Stack holds out.
	Seed uint64 `json:"seed"`
	// Kinds are the kinds of the members' models, for writing and reading; nil means the library's.
	Kinds table.Kinds[Model] `json:"-"`
}

// Check returns an error if the models cannot be combined so. The target has these classes, or nil if it is a number.
func (e Ensemble) Check(classes []string) error {
	m := EnsembleModel{Combine: cmp.Or(e.Combine, Average), outputs: max(len(classes), 1)}
	if err := m.checkCombine(); err != nil {
		return fmt.Errorf("%w: %w", ErrSettings, err)
	}
	linear := []string{"bernoulli-nb", "linear", "logistic", "multinomial-nb", ""} // another's learner may be one
	if m.Combine == MeanCoefficients && !slices.Contains(linear, Learners().NameOf(e.Learner)) {
		return fmt.Errorf("%w: %T has no coefficients that could be averaged; combine by %s", ErrSettings, e.Learner, Average)
	}
	return nil
}

// Fit returns an *EnsembleModel; with MeanCoefficients a model of the learner's own type.
func (e Ensemble) Fit(ctx context.Context, flock table.Flock, rows Rows) (Model, error) {
	flock = table.Careful(flock)
	local := checkTarget(rows)
	if local == nil && rows.Features == nil {
		local = errNoFeatures
	}
	if local == nil && e.Learner == nil {
		local = errors.New("learn: an ensemble without a learner")
	}
	if err := agree(ctx, flock, local, fmt.Sprintf("%T of %T", e, e.Learner), e, rows.Features.Names(), rows.Classes); err != nil {
		return nil, err
	}
	if err := e.Check(rows.Classes); err != nil {
		return nil, err
	}
	m := &EnsembleModel{Combine: cmp.Or(e.Combine, Average), outputs: max(len(rows.Classes), 1), kinds: e.Kinds}
	held := func(row int) bool {
		return m.Combine == Stack && draw(e.Seed, 0, rows.Features.Key(row)) < stackShare
	}
	own := rows.Select(func(row int) bool { return !held(row) })
	brought, err := e.fitOwn(ctx, own)
	if err != nil {
		return nil, err
	}
	if err := m.gather(ctx, flock, brought, rows); err != nil {
		return nil, err
	}
	switch m.Combine {
	case MeanCoefficients:
		return m.meanCoefficients()
	case Stack:
		return m, m.stack(ctx, flock, rows.Select(held))
	}
	return m, nil
}

// broughtModel is what a member sends: its model, or the error for which it has none, and which of reasons that is.
type broughtModel struct {
	typedModel
	Rows float64 `json:"rows"`
	Why  string  `json:"error,omitempty"`
	Is   string  `json:"is,omitempty"`
}

func reasons() map[string]error {
	return map[string]error{"no rows": ErrNoRows, "one class": ErrOneClass, "singular": ErrSingular, "settings": ErrSettings}
}

func (b broughtModel) Error() string { return b.Why }
func (b broughtModel) Unwrap() error { return reasons()[b.Is] }

func (e Ensemble) fitOwn(ctx context.Context, own Rows) (b broughtModel, err error) {
	for i := range own.count() {
		b.Rows += own.weight(i)
	}
	model, err := e.Learner.Fit(ctx, table.Alone{}, own)
	if err == nil {
		b.typedModel, err = encodeModel(model, e.Kinds)
	}
	if ctx.Err() != nil {
		return b, fmt.Errorf("learn: fitting this member's model: %w", err)
	}
	if err != nil {
		b = broughtModel{typedModel: typedModel{Model: json.RawMessage("null")}, Why: err.Error()}
		for is, reason := range reasons() {
			if errors.Is(err, reason) {
				b.Is = is
			}
		}
	}
	return b, nil
}

// gather collects and checks the members' models: each must know the columns, and have as many outputs as the target
// needs.
func (m *EnsembleModel) gather(ctx context.Context, flock table.Flock, brought broughtModel, rows Rows) error {
	all, err := table.GatherJSON(ctx, flock, "models", brought)
	if err != nil {
		return fmt.Errorf("learn: gathering the models of an ensemble: %w", err)
	}
	empty := rows.Select(func(int) bool { return false })
	why := ErrNoRows
	for i, b := range all {
		if b.Why != "" {
			if !errors.Is(b, ErrNoRows) { // one that has rows says more
				why = b
			}
			continue
		}
		model, err := b.decode(m.kinds)
		if err == nil && (model.Outputs() != m.outputs || !(b.Rows >= 0 && b.Rows <= maxWeight)) {
			err = fmt.Errorf("%d outputs of %v rows; want %d", model.Outputs(), b.Rows, m.outputs)
		}
		if err == nil {
			_, err = model.Predict(nil, empty.Features)
		}
		if err != nil {
			return fmt.Errorf("learn: the model of member %d of %d: %w", i+1, len(all), err)
		}
		m.Models, m.Weights = append(m.Models, model), append(m.Weights, b.Rows)
	}
	if len(m.Models) == 0 {
		return fmt.Errorf("learn: no member could fit a model of its own: %w", why)
	}
	return nil
}

func (m *EnsembleModel) stack(ctx context.Context, flock table.Flock, held Rows) error {
	features, err := m.predictions(held.Features)
	if err != nil {
		return err
	}
	held.Features = features
	var learner Learner = &Linear{Ridge: 1}
	if held.Classes != nil {
		learner = &Logistic{}
	}
	if m.Stacker, err = learner.Fit(ctx, table.Scope(flock, "stack"), held); err != nil {
		return fmt.Errorf("learn: stacking on rows held out: %w", err)
	}
	return nil
}

// linearModel is a model with coefficients, which can be averaged.
type linearModel interface{ linear() *Coefficients }

func (c *Coefficients) linear() *Coefficients { return c }

func (m *EnsembleModel) meanCoefficients() (Model, error) {
	all, into := total(m.Weights), (*Coefficients)(nil)
	for i, model := range m.Models {
		c, ok := model.(linearModel)
		if ok && i == 0 {
			into = c.linear()
		}
		if !ok || !slices.Equal(c.linear().Columns, into.Columns) || len(c.linear().Intercept) != len(into.Intercept) {
			return nil, fmt.Errorf("%w: no coefficients that could be averaged, of models %T and %T", ErrSettings, m.Models[0], model)
		}
		part := ratio(m.Weights[i], all)
		for o, weights := range c.linear().Weights {
			if i == 0 {
				into.Intercept[o] *= part
				floats.Scale(part, into.Weights[o])
				continue
			}
			add(into.Intercept[o:o+1], part, c.linear().Intercept[o:o+1])
			add(into.Weights[o], part, weights)
		}
	}
	return m.Models[0], nil
}
