package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"
)

// Bounds of Checks.Every.
const (
	MinEvery = 100 * time.Millisecond
	MaxEvery = time.Hour
	// rests is how many times as long as a check there is none: checks take a tenth of a core at most.
	rests = 9
)

// Checks looks for newer models, and swaps them in by the rules of Gate. A model that turns out to be worse than the
// one before is served until the next check at most.
type Checks struct {
	// Next returns a model that is newer than all that it has returned, or nil.
	Next func(context.Context) (Model, error)
	// Judge measures models on the same held-out rows, larger is better; NaN is one that cannot be measured. The rows
	// may differ from check to check. The model that is served comes first. If Judge is nil, each newer model is taken
	// as it comes.
	Judge func(context.Context, ...Model) ([]float64, error)
	// Every is the time between checks, and nine times as long as a check takes if that is longer. It is MinEvery to
	// MaxEvery; else the nearer of both.
	Every time.Duration
	// Margin is Gate.Margin.
	Margin float64
	// Told hears of each check of which something came; it may be nil.
	Told func(Checked)
}

// Checked says what came of a check. After an error nothing has changed, except that a first model is served; the next
// check tries again.
type Checked struct {
	Decision
	Version string // that is served now
	Other   string // that is not: the one before, or the one refused
	Figures Figures
	Err     error
}

// Run checks at once, and then every so often until ctx ends. Nobody else may swap models of the holder.
func (c Checks) Run(ctx context.Context, h *Holder) {
	s := &series{Checks: c, gate: Gate{Margin: max(c.Margin, 0)}, holder: h, models: make(map[string]Model)}
	for ctx.Err() == nil {
		began := time.Now()
		came := s.check(ctx)
		if c.Told != nil && (came.Err != nil || came.Decision != Keep) {
			c.Told(came)
		}
		timer := time.NewTimer(min(max(c.Every, rests*time.Since(began), MinEvery), MaxEvery))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// series is the state of Run.
type series struct {
	Checks
	gate    Gate
	holder  *Holder
	models  map[string]Model // the served version, the fallback, and the candidate until it is measured
	pending string           // the candidate
}

func (s *series) check(ctx context.Context) (came Checked) {
	next, err := s.Next(ctx)
	if err == nil && next != nil && next.About().Version == "" { // it would never be served, and nobody be told
		err = errors.New("it has no version: its About is to say one, unlike that of any other")
	}
	if err != nil {
		return Checked{Err: fmt.Errorf("looking for a newer model: %w", err)}
	}
	if next != nil && s.gate.Wants(next.About().Version) {
		delete(s.models, s.pending) // one that could not be measured yet
		s.pending = next.About().Version
		s.models[s.pending] = next
	}
	before, candidate := s.gate.served, s.pending
	if candidate == "" && s.gate.fallback == "" {
		return Checked{}
	}
	came.Figures, came.Err = s.measure(ctx)
	if came.Err != nil && before != "" {
		return came
	}
	came.Decision, came.Other, s.pending = s.gate.Check(candidate, came.Figures), before, ""
	if s.Judge == nil {
		came.Figures.Candidate = math.NaN() // nothing was measured: 0 was for the gate
	}
	switch came.Version = s.gate.served; came.Decision {
	case Swap:
		s.holder.Swap(s.models[came.Version], came.Figures.Candidate)
	case RollBack:
		s.holder.Swap(s.models[came.Version], came.Figures.Fallback)
	default:
		came.Other = candidate
		now := *s.holder.Served()
		now.Figure = came.Figures.Served
		s.holder.current.Store(&now)
	}
	s.holder.came[came.Decision].Add(1)
	maps.DeleteFunc(s.models, func(v string, _ Model) bool { return v != s.gate.served && v != s.gate.fallback })
	return came
}

// measure measures all models that there are.
func (s *series) measure(ctx context.Context) (Figures, error) {
	f := Figures{math.NaN(), math.NaN(), math.NaN()}
	if s.Judge == nil {
		f.Candidate = 0 // the others are not measured, so it counts as better
		return f, nil
	}
	var models []Model
	var into []*float64
	all := []*float64{&f.Served, &f.Fallback, &f.Candidate}
	for i, version := range []string{s.gate.served, s.gate.fallback, s.pending} {
		if version != "" {
			models, into = append(models, s.models[version]), append(into, all[i])
		}
	}
	figures, err := s.Judge(ctx, models...)
	if err == nil && len(figures) != len(models) {
		err = fmt.Errorf("%d figures for %d models", len(figures), len(models))
	}
	if err != nil {
		return f, fmt.Errorf("measuring on held-out rows: %w", err)
	}
	for i, figure := range figures {
		*into[i] = figure
	}
	return f, nil
}
