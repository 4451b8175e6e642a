package pipeline

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestErrorsBeyondTheUsual: a member of the last stage that sends errors, or losses, far beyond what is usual ends nobody's
// training, though it is there from the beginning.
func TestErrorsBeyondTheUsual(t *testing.T) {
	large := func(n int) outcome {
		v := make(tensor.Vector, n)
		v[0] = 1e28
		return outcome{values: encode(raw(), v)}
	}
	for what, c := range map[string]struct {
		after time.Duration
		lie   func(values int) outcome
	}{
		"loss":                  {3 * time.Second, func(n int) outcome { return outcome{loss: -1e308, values: encode(raw(), make(tensor.Vector, n))} }},
		"errors":                {3 * time.Second, large},
		"errors from the first": {0, large},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, perceptron(t, 1, 2))
				liar := func() {
					w.liar(2, func(_ context.Context, s *framed.Stream) error {
						var m wire.Batch
						_, err := s.Receive(&m)
						if err == nil {
							err = writeOutcome(s, c.lie(int(m.Values)))
						}
						s.Finish()
						return err
					})
				}
				if c.after == 0 {
					liar()
				}
				for stage := range 3 {
					w.member(string(rune('a'+stage)), stage, stage == 0, nil)
				}
				if time.Sleep(c.after); c.after > 0 {
					liar()
				}
				time.Sleep(20 * time.Second)
				for _, m := range w.all {
					select {
					case err := <-m.failed:
						t.Errorf("%s: %v", m.name, err)
					default:
					}
					if steps := m.trainer.Stats().Steps; steps < 20 {
						t.Errorf("%s has made %d steps", m.name, steps)
					}
				}
			})
		})
	}
}

// liar makes a member that trains a stage by its record, and answers as it likes.
func (w *world) liar(stage int, answer func(context.Context, *framed.Stream) error) (*peer.Node, *peer.Service) {
	w.t.Helper()
	n := w.node("liar")
	trainer, err := n.Train(w.t.Context(), peer.Training{Params: w.plan.Init(stage, 3), Stage: w.plan.Stage(stage), Optimizer: &optim.SGD{}})
	if err != nil {
		w.t.Fatal(err)
	}
	service, err := peer.Serve(n, transport.ProtocolStages, answer)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { service.Close(); trainer.Close(); n.Close() })
	return n, service
}

// TestStreamsThatOnlyBegin: a member that begins many micro-batches, and sends none, keeps out no other.
func TestStreamsThatOnlyBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		a := w.member("a", 0, true, nil)
		b := w.member("b", 1, false, nil)
		time.Sleep(5 * time.Second)
		_, service := w.liar(0, nil)
		ctx, end := context.WithCancel(t.Context())
		var opening sync.WaitGroup
		defer opening.Wait()
		defer end()
		for range 20 {
			opening.Go(func() {
				for ctx.Err() == nil {
					_ = service.Ask(ctx, b.node.Self(), func(s *framed.Stream) error {
						m := wire.Batch{Stage: 2, Codec: raw().ID(), Source: "me", Examples: 4, Values: uint32(4 * w.plan.Stages[1].In().Len()), Targets: 4}
						if err := framed.Say(s, 0, m); err != nil {
							return err
						}
						s.Stall = time.Hour
						_, err := readOutcome(s, raw())
						return err
					})
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		before, _ := a.Counts()
		time.Sleep(10 * time.Second)
		if after, _ := a.Counts(); after.Done < before.Done+900 {
			t.Errorf("%d micro-batches came back in 10 s", after.Done-before.Done)
		}
	})
}

// TestWhoChangesItsStage: what a member sent, and cannot be answered any more, is held no longer.
func TestWhoChangesItsStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, false, nil)
		b := w.member("b", 1, false, nil)
		n := w.node("liar")
		service, err := peer.Serve(n, transport.ProtocolStages, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { service.Close(); n.Close() })
		service.Choose(1)
		time.Sleep(3 * time.Second)
		x := encode(raw(), make(tensor.Vector, 4*w.plan.Stages[1].In().Len()))
		done := make(chan error, 3)
		b.mu.Lock() // nothing is computed meanwhile
		for range cap(done) {
			go func() {
				done <- service.Ask(t.Context(), b.node.Self(), func(s *framed.Stream) error {
					_, err := request(s, 1, parcel{examples: 4, values: x, targets: encode(raw(), make(tensor.Vector, 4))})
					return err
				})
			}()
		}
		service.Choose(2)
		b.mu.Unlock()
		for range cap(done) {
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("a stream is open for a minute")
			}
		}
		time.Sleep(time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.Pipeline.steps.stages[0].held); n > 0 {
			t.Errorf("%d micro-batches are held", n)
		}
	})
}

// TestAStepIsBrokenOff: gradients of a step that ctx ended are not made a step of later.
func TestAStepIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, true, nil)
		n := w.node("b")
		trainer, err := n.Train(t.Context(), peer.Training{Params: w.plan.Init(1, 3), Stage: w.plan.Stage(1), Optimizer: &optim.SGD{}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(n, trainer, Config{Plan: w.plan, Stage: 1, Examples: 4, Batch: 8})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(); trainer.Close(); n.Close() })
		time.Sleep(5 * time.Second)
		x := make(tensor.Vector, w.plan.Stages[1].Layout().Len())
		for i := range 6 {
			within := 45 * time.Millisecond // some four of the eight
			if i == 5 {
				within = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			r, err := p.steps.gradient(ctx, x, make(tensor.Vector, len(x)), p.service.Over)
			cancel()
			if i < 5 && err == nil || i == 5 && (err != nil || r.Samples != 32) {
				t.Errorf("step %d: %+v, %v", i, r, err)
			}
		}
	})
}

// TestRowsThatAreNoNumbers are left out and counted, and hold up no others.
func TestRowsThatAreNoNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.spoils = 3
		a := w.member("a", 0, true, nil)
		w.member("b", 1, false, nil)
		time.Sleep(10 * time.Second)
		c, _ := a.Counts()
		if c.Done < 500 || c.Lost < c.Done/3 || c.Lost > c.Done || c.Again > 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestPredictionsOfADropout are those of the whole model, without Dropout; who waits for some, or for the parameters of all stages, when the
// pipeline and its node close is told.
func TestPredictionsOfADropout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, err := nn.Sequential(nn.Linear(inputs, 24), nn.Dropout(0.5), nn.Linear(24, 4)).Build(inputs)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := Cut(model, nn.CrossEntropy(), 1)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, plan)
		a := w.member("a", 0, false, nil)
		b := w.member("b", 1, false, nil)
		x, _ := points(rand.New(rand.NewPCG(4, 4)), 200)
		want := make(tensor.Vector, 200*4)
		plan.Whole.Predict(plan.Whole.Init(3).Vector(), want, x)
		if got, err := a.Predict(t.Context(), x); err != nil || !tensor.Identical(got, want) {
			t.Errorf("%v, other outputs: %t", err, err == nil)
		}
		w.leave(b)
		waits := make(chan error, 2)
		ctx, end := context.WithTimeout(context.Background(), time.Hour)
		defer end()
		go func() {
			_, err := a.Predict(ctx, x)
			waits <- err
		}()
		go func() {
			_, err := a.Whole(ctx)
			waits <- err
		}()
		time.Sleep(time.Second)
		w.leave(a)
		for range cap(waits) {
			if err := <-waits; !errors.Is(err, peer.ErrClosed) {
				t.Errorf("waiting while it closes: %v", err)
			}
		}
	})
}

// TestACopyOfTheFuture: a member that says that its copy of a stage is newer than the run is not believed.
func TestACopyOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, true, nil)
		alone := w.member("c", 1, false, nil)
		w.liar(0, func(_ context.Context, s *framed.Stream) error {
			var m wire.Batch
			if _, err := s.Receive(&m); err != nil || m.Kind != wire.BatchFetch {
				s.Refuse(0, wire.ReasonBusy, "")
				return err
			}
			false := encode(raw(), make(tensor.Vector, w.plan.Stages[1].Layout().Len()))
			err := framed.Say(s, 0, wire.Batch{Kind: wire.BatchKeep, Stage: m.Stage, Codec: raw().ID(), Number: math.MaxUint64, Values: uint32(false.n)})
			err = errors.Join(err, false.send(s))
			s.Finish()
			return err
		})
		time.Sleep(30 * time.Second)
		w.crash(alone)
		time.Sleep(5 * time.Second)
		n := w.node("d")
		t.Cleanup(func() { n.Close() })
		place, err := Choose(t.Context(), n, w.plan)
		if err != nil || place.Stage != 1 || place.Params != nil && tensor.MaxAbs(place.Params.Vector()) == 0 {
			t.Errorf("chose %+v, %v", place, err)
		}
	})
}

// TestWhoChoosesAndNeverTrains keeps no newcomer from a stage for ever, and a pipeline is of the stage that its trainer has.
func TestWhoChoosesAndNeverTrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		a := w.member("a", 0, true, nil)
		alone := w.member("c", 1, false, nil)
		time.Sleep(10 * time.Second)
		idle := w.node("idle")
		t.Cleanup(func() { idle.Close() })
		if place, err := Choose(t.Context(), idle, w.plan); err != nil || place.Stage != 1 {
			t.Fatalf("chose %+v, %v", place, err)
		}
		w.crash(alone)
		time.Sleep(time.Second)
		n := w.node("d")
		t.Cleanup(func() { n.Close() })
		if place, err := Choose(t.Context(), n, w.plan); err != nil || place.Stage != 1 {
			t.Errorf("chose %+v, %v", place, err)
		}
		if _, err := New(a.node, a.trainer, Config{Plan: w.plan, Stage: 1}); !errors.Is(err, peer.ErrConfig) {
			t.Errorf("a pipeline of another stage: %v", err)
		}
	})
}

// TestCopiesThatAreKept: an older copy does not replace a newer one, nor does one of the future, which would stand in the way of
// all others; a copy that cannot be had is told.
func TestCopiesThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		a := w.member("a", 0, true, nil)
		_, service := w.liar(1, nil)
		time.Sleep(2 * time.Second)
		values := encode(raw(), make(tensor.Vector, w.plan.Stages[1].Layout().Len()))
		for _, c := range []struct{ at, kept uint64 }{{10, 10}, {5, 10}, {1 << 60, 10}, {11, 11}} {
			err := service.Ask(t.Context(), a.node.Self(), func(s *framed.Stream) error { return kept{c.at, values}.give(s, 2) })
			if err != nil {
				t.Errorf("a copy of step %d: %v", c.at, err)
			}
			time.Sleep(time.Second)
			if got := a.copies.of(1); got.at != c.kept {
				t.Errorf("after a copy of step %d that of step %d is kept, want %d", c.at, got.at, c.kept)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 1, 2))
		w.member("a", 0, true, nil)
		w.member("b", 1, true, nil)
		w.liar(1, func(_ context.Context, s *framed.Stream) error {
			var m wire.Batch
			if _, err := s.Receive(&m); err != nil || m.Kind != wire.BatchFetch {
				s.Refuse(0, wire.ReasonBusy, "")
				return err
			}
			err := framed.Say(s, 0, wire.Batch{Kind: wire.BatchKeep, Stage: m.Stage, Codec: raw().ID(), Number: 1, Values: uint32(w.plan.Stages[2].Layout().Len())})
			time.Sleep(time.Second)
			return errors.Join(err, errUseless)
		})
		time.Sleep(2 * time.Second)
		n := w.node("d")
		t.Cleanup(func() { n.Close() })
		place, err := Choose(t.Context(), n, w.plan)
		if err != nil || place.Stage != 2 || place.Params != nil || place.Fault == nil {
			t.Errorf("chose %+v, %v", place, err)
		}
	})
}

// TestAChoiceThatIsBrokenOff: whose context ends while members are asked for copies of a stage is told so, and not that there are none;
// its record says no stage any more.
func TestAChoiceThatIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		ctx, end := context.WithCancelCause(t.Context())
		_, service := w.liar(0, func(_ context.Context, s *framed.Stream) error {
			var m wire.Batch
			if _, err := s.Receive(&m); err == nil && m.Kind == wire.BatchFetch {
				end(errUseless)
			}
			return errUseless
		})
		n := w.node("d")
		t.Cleanup(func() { n.Close() })
		if place, err := Choose(ctx, n, w.plan); !errors.Is(err, errUseless) {
			t.Errorf("chose %+v, %v", place, err)
		}
		time.Sleep(5 * time.Second)
		if all := service.Records(); len(all) != 1 || all[0].Stage != 0 {
			t.Errorf("its record says %+v", all)
		}
	})
}
