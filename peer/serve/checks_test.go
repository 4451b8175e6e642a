package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a model of a test.
type fake struct {
	about   About
	predict func(dst []float64, rows Rows) ([]float64, error)
}

func (f fake) About() About { return f.about }

func (f fake) Predict(dst []float64, rows Rows) ([]float64, error) { return f.predict(dst, rows) }

// named is a model that only has a version.
func named(version string) Model { return fake{about: About{Version: version}} }

// world has models that come, and figures that change, at times of a test.
type world struct {
	sync.Mutex
	next    Model
	figures map[string]float64
	took    time.Duration // of a measurement
	broken  error
	told    []string
	held    int // the most models measured at a time
}

// run checks every second until stop.
func (w *world) run(t *testing.T) (h *Holder) {
	h = new(Holder)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		Checks{
			Every: time.Second,
			Next: func(context.Context) (m Model, err error) {
				w.Lock()
				defer w.Unlock()
				m, w.next = w.next, nil
				return m, nil
			},
			Judge: func(_ context.Context, models ...Model) (figures []float64, err error) {
				w.Lock()
				defer w.Unlock()
				time.Sleep(w.took)
				w.held = max(w.held, len(models))
				for _, m := range models {
					figures = append(figures, w.figures[m.About().Version])
				}
				return figures, w.broken
			},
			Told: func(c Checked) {
				w.Lock()
				defer w.Unlock()
				w.told = append(w.told, fmt.Sprintf("%v %s, not %s", c.Decision, c.Version, c.Other))
				if c.Err != nil {
					w.told[len(w.told)-1] += ": " + c.Err.Error()
				}
			},
		}.Run(ctx, h)
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return h
}

// set changes the world at a moment when no check runs.
func (w *world) set(next Model, figures map[string]float64, broken error) {
	w.Lock()
	defer w.Unlock()
	w.next, w.figures, w.broken = next, figures, broken
}

func (w *world) taken() bool {
	w.Lock()
	defer w.Unlock()
	return w.next == nil
}

func (w *world) heard() []string {
	w.Lock()
	defer w.Unlock()
	return slices.Clone(w.told)
}

// TestAWorseModelIsServedForOneCheckAtMost: a model that turns out to be worse than the one before is served until
// the next check and the time that this takes; one that is worse when it comes is not served at all.
func TestAWorseModelIsServedForOneCheckAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{next: named("a"), figures: map[string]float64{"a": 0.5}, took: 10 * time.Millisecond}
		h := w.run(t)
		time.Sleep(w.took)
		is := func(version string, figure float64) {
			t.Helper()
			synctest.Wait()
			if s := h.Served(); s == nil || s.About().Version != version || s.Figure != figure {
				t.Errorf("%+v is served, want %s of %v; %q", s, version, figure, w.heard())
			}
		}
		is("a", 0.5) // at once
		time.Sleep(time.Millisecond)
		w.set(named("b"), map[string]float64{"a": 0.5, "b": 0.4}, nil)
		time.Sleep(time.Second + w.took)
		is("a", 0.5)
		w.set(named("c"), map[string]float64{"a": 0.5, "c": 0.6}, nil)
		time.Sleep(time.Second + w.took)
		is("c", 0.6)
		since := h.Served().Since
		w.set(nil, map[string]float64{"a": 0.6, "c": 0.7}, nil)
		time.Sleep(time.Second + w.took)
		is("c", 0.7) // measured anew, and not swapped
		if h.Served().Since != since {
			t.Error("a model that stays is served since another time")
		}
		w.set(nil, map[string]float64{"a": 0.6, "c": 0.5}, nil) // from now on it is worse
		time.Sleep(time.Second + w.took)
		is("a", 0.6)
		w.set(named("c"), map[string]float64{"a": 0.6, "c": 0.9}, nil)
		time.Sleep(time.Second + w.took)
		is("a", 0.6) // what was rolled back does not come again
		want := "swapped a, not ; refused a, not b; swapped c, not a; rolled_back a, not c"
		if got := strings.Join(w.heard(), "; "); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		w.Lock()
		defer w.Unlock()
		if w.held > 3 {
			t.Errorf("%d models in memory", w.held)
		}
	})
}

// TestChecksThatFail change nothing, but that a first model is served; what came meanwhile is measured later.
func TestChecksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{next: named("a"), broken: errors.New("no rows")}
		h := w.run(t)
		synctest.Wait()
		if s := h.Served(); s == nil || s.About().Version != "a" || !math.IsNaN(s.Figure) {
			t.Errorf("%+v is served", s)
		}
		for _, next := range []string{"b", "c"} {
			w.set(named(next), nil, errors.New("no rows"))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		w.set(nil, map[string]float64{"a": 1, "c": 2}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if v := h.Served().About().Version; v != "c" {
			t.Errorf("%s is served, %q", v, w.heard())
		}
		if told := w.heard(); len(told) != 4 || !strings.Contains(told[0], "swapped a, not : measuring on held-out rows: no rows") || told[3] != "swapped c, not a" {
			t.Errorf("told %q", told)
		}
	})
}

// TestChecksTakeATenth: if a check takes longer than the time between checks, the machine rests for nine times as long.
func TestChecksTakeATenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{next: named("a"), figures: map[string]float64{"a": 1, "b": 2}, took: time.Minute}
		h := w.run(t)
		time.Sleep(time.Minute + time.Second)
		w.set(named("b"), w.figures, nil)
		time.Sleep(9*time.Minute - 2*time.Second)
		if w.taken() {
			t.Error("it looks for a model before it has rested")
		}
		time.Sleep(time.Minute + 2*time.Second)
		synctest.Wait()
		if v := h.Served().About().Version; v != "b" {
			t.Errorf("%s is served", v)
		}
	})
}

// TestUnjudged: without a judge each newer model is served, and nobody is told of a figure.
func TestUnjudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := new(Holder), 0
		ctx, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer stop()
		Checks{Every: time.Second, Next: func(context.Context) (Model, error) {
			if n++; n == 2 {
				return nil, errors.New("half a file")
			}
			return named(fmt.Sprint(n)), nil
		}, Told: func(c Checked) {
			if c.Err == nil && !(math.IsNaN(c.Figures.Candidate) && math.IsNaN(h.Served().Figure)) {
				t.Errorf("%+v, served with %v", c, h.Served().Figure)
			}
		}}.Run(ctx, h)
		if v := h.Served().About().Version; n != 3 || v != "3" {
			t.Errorf("%d checks, version %s", n, v)
		}
	})
}

// TestModelsAreFew: while nothing can be measured, only the newest candidate is kept.
func TestModelsAreFew(t *testing.T) {
	n := 0
	s := &series{holder: new(Holder), models: make(map[string]Model), Checks: Checks{
		Next:  func(context.Context) (Model, error) { n++; return named(fmt.Sprint(n)), nil },
		Judge: func(context.Context, ...Model) ([]float64, error) { return nil, nil },
	}}
	for range 10 {
		s.check(t.Context())
		if len(s.models) > 2 {
			t.Fatalf("%d models after %d checks", len(s.models), n)
		}
	}
	if s.pending != "10" || s.gate.served != "1" {
		t.Errorf("%q is pending, %q served", s.pending, s.gate.served)
	}
}

// TestAModelWithoutAVersion is not served, and who checks is told why.
func TestAModelWithoutAVersion(t *testing.T) {
	s := &series{holder: new(Holder), models: make(map[string]Model), Checks: Checks{Next: func(context.Context) (Model, error) { return named(""), nil }}}
	if came := s.check(t.Context()); came.Err == nil || !strings.Contains(came.Err.Error(), "no version") || s.holder.Served() != nil {
		t.Errorf("it comes to %+v", came)
	}
}
