package pipeline

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/stages"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// TestHostileSenders: what does not fit the stage, or are no numbers, is refused, and whoever sends a flood is told that
// there is no room; the members go on meanwhile.
func TestHostileSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		first := w.member("a", 0, true, nil)
		w.member("b", 1, false, nil)
		n := w.node("liar")
		service, err := peer.Serve(n, transport.ProtocolStages, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { service.Close(); n.Close() })
		time.Sleep(5 * time.Second)
		good := make(tensor.Vector, 4*inputs)
		nan := append(tensor.Vector{float32(math.NaN())}, good[1:]...)
		batch := wire.Batch{Stage: 1, Codec: raw().ID(), Source: "me", Examples: 4, Values: 4 * inputs, Targets: 4}
		with := func(change func(*wire.Batch)) wire.Batch { m := batch; change(&m); return m }
		for what, c := range map[string]struct {
			batch  wire.Batch
			values tensor.Vector
			want   wire.Reason
		}{
			"what fits":             {batch, good, 0},
			"values that are none":  {batch, nan, wire.ReasonProtocol},
			"too many examples":     {with(func(m *wire.Batch) { m.Examples, m.Values, m.Targets = 5, 5*inputs, 5 }), good, wire.ReasonProtocol},
			"no examples":           {with(func(m *wire.Batch) { m.Examples, m.Values, m.Targets = 0, 0, 0 }), nil, wire.ReasonProtocol},
			"too few values":        {with(func(m *wire.Batch) { m.Values-- }), good, wire.ReasonProtocol},
			"too many targets":      {with(func(m *wire.Batch) { m.Targets++ }), good, wire.ReasonProtocol},
			"targets of an outcome": {with(func(m *wire.Batch) { m.Kind = wire.BatchOutputs }), good, wire.ReasonProtocol},
			"no codec":              {with(func(m *wire.Batch) { m.Codec = 99 }), good, wire.ReasonProtocol},
			"a lattice":             {with(func(m *wire.Batch) { m.Codec = 26 }), good, wire.ReasonProtocol},
			"another stage":         {with(func(m *wire.Batch) { m.Stage = 2 }), good, wire.ReasonProtocol},
			"short frames":          {batch, good[:8], wire.ReasonProtocol},
			"a copy of a stage":     {wire.Batch{Kind: wire.BatchKeep, Stage: 2, Codec: raw().ID(), Values: uint32(w.plan.Stages[1].Layout().Len())}, good, wire.ReasonProtocol},
			"a copy of none":        {wire.Batch{Kind: wire.BatchFetch, Stage: 77}, nil, wire.ReasonProtocol},
			"a copy of stage zero":  {wire.Batch{Kind: wire.BatchKeep}, nil, wire.ReasonProtocol},
		} {
			err := service.Ask(t.Context(), first.node.Self(), func(s *framed.Stream) error {
				if err := errors.Join(framed.Say(s, 0, c.batch), encode(raw(), c.values).send(s)); err != nil {
					return err
				}
				if c.want == 0 || c.batch.Examples > 0 {
					if err := encode(raw(), make(tensor.Vector, c.batch.Targets)).send(s); err != nil {
						return err
					}
				}
				s.Stall = longest
				_, err := readOutcome(s, raw())
				return err
			})
			refusal, refused := errors.AsType[*wire.Refusal](err)
			if c.want == 0 && err != nil || c.want != 0 && (!refused || refusal.Reason != c.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		rows, _ := first.Counts()
		var flood sync.WaitGroup
		var mu sync.Mutex
		answers := map[stages.Answer]int{}
		for range 200 {
			flood.Go(func() {
				_ = service.Ask(t.Context(), first.node.Self(), func(s *framed.Stream) error {
					o, err := request(s, 0, parcel{examples: 4, values: encode(raw(), good), targets: encode(raw(), make(tensor.Vector, 4))})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						answers[o.answer]++
					}
					return err
				})
			})
		}
		flood.Wait()
		if answers[stages.NoRoom] < 150 {
			t.Errorf("answers to a flood: %v", answers)
		}
		time.Sleep(5 * time.Second)
		if after, _ := first.Counts(); after.Done < rows.Done+200 || after.Lost > 0 {
			t.Errorf("rows before a flood %+v, and after %+v", rows, after)
		}
	})
}

// TestLabelsOfNoClass: labels that the loss does not take are left out by who has them, and refused by others, who go on.
func TestLabelsOfNoClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		first, last := w.member("a", 0, true, nil), w.member("b", 1, false, nil)
		time.Sleep(5 * time.Second)
		for _, label := range []float32{4, -1, 0.5, 1e9} {
			x, y := make(tensor.Vector, 4*inputs), tensor.Vector{0, 0, label, 0}
			if _, err := first.Pipeline.rows.put(t.Context(), x, y); !errors.Is(err, errUseless) {
				t.Errorf("the label %v: %v", label, err)
			}
			p := parcel{examples: 4, values: encode(raw(), make(tensor.Vector, 4*w.plan.Stages[1].In().Len())), targets: encode(raw(), y), back: 4 * w.plan.Stages[1].In().Len()}
			err := first.service.Ask(t.Context(), last.node.Self(), func(s *framed.Stream) error {
				_, err := request(s, 1, p)
				return err
			})
			if refusal, refused := errors.AsType[*wire.Refusal](err); !refused || refusal.Reason != wire.ReasonProtocol {
				t.Errorf("the label %v is answered: %v", label, err)
			}
			time.Sleep(time.Second)
		}
		before, _ := first.Counts()
		time.Sleep(5 * time.Second)
		if after, _ := first.Counts(); after.Lost > 0 || after.Done < before.Done+200 {
			t.Errorf("rows before %+v, and after %+v", before, after)
		}
	})
}

// credulous takes all targets, and panics at some.
type credulous struct{ nn.Loss }

func (credulous) Takes(nn.Shape, tensor.Vector) bool { return true }

// TestAPanicIsOneMicroBatch: what the model or the loss panics at is given up, and the member lives on.
func TestAPanicIsOneMicroBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := perceptron(t, 2)
		plan.Loss = credulous{plan.Loss}
		w := newWorld(t, plan)
		first := w.member("a", 0, true, nil)
		w.member("b", 1, false, nil)
		time.Sleep(5 * time.Second)
		if _, err := first.Pipeline.rows.put(t.Context(), make(tensor.Vector, 4*inputs), tensor.Vector{0, 0, 9, 0}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before, _ := first.Counts()
		time.Sleep(5 * time.Second)
		if after, _ := first.Counts(); after.Lost != 1 || after.Done < before.Done+200 {
			t.Errorf("rows before %+v, and after %+v, want one lost", before, after)
		}
	})
}

// TestHostileAnswers: errors that are none, too many of them, or none at all, are not used, and who sends them gets less.
func TestHostileAnswers(t *testing.T) {
	for what, lie := range map[string]func(m wire.Batch) outcome{
		"no numbers": func(m wire.Batch) outcome {
			errors := make(tensor.Vector, m.Values)
			errors[0] = float32(math.Inf(1))
			return outcome{values: encode(raw(), errors)}
		},
		"too few":   func(m wire.Batch) outcome { return outcome{values: encode(raw(), make(tensor.Vector, m.Values-1))} },
		"none":      func(wire.Batch) outcome { return outcome{values: encode(raw(), nil)} },
		"useless":   func(wire.Batch) outcome { return outcome{answer: stages.GivenUp, values: encode(raw(), nil)} },
		"not taken": func(wire.Batch) outcome { return outcome{answer: stages.NoRoom, values: encode(raw(), nil)} },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, perceptron(t, 2))
				first := w.member("a", 0, true, nil)
				w.member("b", 1, false, nil)
				n, asked := w.node("liar"), new(atomic.Int64)
				trainer, err := n.Train(t.Context(), peer.Training{Params: w.plan.Init(1, 3), Stage: w.plan.Stage(1), Optimizer: &optim.SGD{}})
				if err != nil {
					t.Fatal(err)
				}
				service, err := peer.Serve(n, transport.ProtocolStages, func(_ context.Context, s *framed.Stream) error {
					var m wire.Batch
					_, err := s.Receive(&m)
					if asked.Add(1); err == nil {
						err = writeOutcome(s, lie(m))
					}
					s.Finish()
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { service.Close(); trainer.Close(); n.Close() })
				time.Sleep(8 * time.Second)
				rows, _ := first.Counts()
				if rows.Done < 600 || rows.Lost > rows.Done/20 || asked.Load() == 0 || what != "not taken" && asked.Load() > 200 {
					t.Errorf("rows %+v, the liar was asked %d times", rows, asked.Load())
				}
				if err := first.node.Stats(); err.Loss != err.Loss {
					t.Error("a lie has become a gradient")
				}
			})
		})
	}
}

// TestWhatIsOfARoundBefore is given up, and nothing is held of it: whoever sends such does not fill the memory.
func TestWhatIsOfARoundBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rounding(t, perceptron(t, 2), 1)
		time.Sleep(5 * time.Second)
		to, from := w.all[0], w.all[1]
		held := func() int {
			to.mu.Lock()
			defer to.mu.Unlock()
			return len(to.Pipeline.steps.stages[0].held)
		}
		before := held()
		for range 50 {
			err := from.service.Ask(t.Context(), to.node.Self(), func(s *framed.Stream) error {
				p := parcel{round: 1, examples: 4, values: encode(raw(), make(tensor.Vector, 4*inputs)), targets: encode(raw(), make(tensor.Vector, 4))}
				o, err := request(s, 0, p)
				if err == nil && o.answer != stages.GivenUp {
					t.Errorf("answer %d", o.answer)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if after := held(); after > before+25 {
			t.Errorf("it holds %d micro-batches, and %d before", after, before)
		}
	})
}
