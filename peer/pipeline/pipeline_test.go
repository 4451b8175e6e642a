package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// over waits until the run is over for all members that are left.
func (w *world) over() {
	w.t.Helper()
	for _, m := range w.all {
		if err := <-m.failed; !errors.Is(err, peer.ErrRunOver) {
			w.t.Fatalf("%s: %v", m.name, err)
		}
	}
}

// tell logs how members got on, and checks that what became of micro-batches adds up.
func (w *world) tell() {
	w.t.Helper()
	for _, m := range w.all {
		fed := m.fed.Load() // before and after: micro-batches go on meanwhile
		rows, stage := m.Counts()
		later, s := m.fed.Load(), m.node.Stats()
		w.t.Logf("%s: rows %+v, stage %+v, %d steps, %d exchanges, loss %.3f", m.name, rows, stage, s.Steps, s.Exchanges.Completed(), m.Loss())
		for _, c := range []Counts{rows, stage} {
			if left := c.Came - c.Done - c.Lost; left > 40 || c.Came < c.Done+c.Lost {
				w.t.Errorf("%s: %d micro-batches are neither done nor lost", m.name, left)
			}
		}
		if fed > rows.Came+2 || later < rows.Came {
			w.t.Errorf("%s: %d micro-batches of %d were sent", m.name, rows.Came, fed)
		}
	}
}

// TestStagesLearn: two stages of two members, each with rows, learn what a whole model would, in every codec; members of a
// stage exchange among themselves, and all that was sent is accounted for.
func TestStagesLearn(t *testing.T) {
	for name, steps := range map[string]uint64{"raw": 1200 / sparing, "bf16": 400, "int8": 400} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, perceptron(t, 2))
				w.codec, _ = quant.ByName(name)
				w.steps = steps
				w.flock(2)
				w.over()
				w.tell()
				first, _ := w.all[0].Counts()
				for _, m := range w.all {
					rows, stage := m.Counts()
					if 3*rows.Done < 2*first.Done || 3*first.Done < 2*rows.Done {
						t.Errorf("%s had %d micro-batches of its rows computed, another %d", m.name, rows.Done, first.Done)
					}
					if m.node.Stats().Exchanges.Completed() == 0 || rows.Done == 0 || stage.Done == 0 || rows.Lost+stage.Lost+rows.Again+stage.Again > 0 {
						t.Errorf("%s is idle, or has lost something", m.name)
					}
				}
				if a := w.accuracy(w.whole().Vector()); a < 0.6 || name == "raw" && a < 0.8 {
					t.Errorf("accuracy %.3f", a)
				}
			})
		})
	}
}

// TestAStepIsThatOfTheWhole: with one member for each stage, the first step is, to the bit, that of the whole model by the
// same micro-batches, for every cut.
func TestAStepIsThatOfTheWhole(t *testing.T) {
	type cut struct {
		at   []int
		ends bool
	}
	for _, c := range []cut{{[]int{1}, false}, {[]int{2}, false}, {[]int{1, 2}, false}, {[]int{1, 2}, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, perceptron(t, c.at...))
			if w.once = true; c.ends {
				w.plan = ending(t, w.plan)
			}
			for stage := range w.plan.Parts() {
				w.member(string(rune('a'+stage)), stage, stage == 0, nil)
			}
			for _, m := range w.all {
				if err := <-m.failed; err != nil {
					t.Fatal(err)
				}
			}
			params := w.plan.Whole.Init(3).Vector()
			trainer := w.plan.Whole.Trainer(4, nn.CrossEntropy())
			sum, one := make(tensor.Vector, len(params)), make(tensor.Vector, len(params))
			rng := rand.New(rand.NewPCG(0, 7))
			for range 8 {
				x, y := points(rng, 4)
				trainer.Gradient(params, one, x, y)
				tensor.Axpy(sum, 4, one)
			}
			tensor.Scale(sum, 1.0/32)
			rate := float32(0.3)
			for i, g := range sum {
				params[i] -= rate * g
			}
			if got := w.whole().Vector(); !tensor.Identical(got, params) {
				t.Errorf("%+v: another step than the whole model's", c)
			}
		})
	}
}

// TestStagesByAllReduce: within the stages members may average gradients instead, in lock-step.
func TestStagesByAllReduce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.steps = 400
		machine := func(c averaging.Config) (averaging.Machine, error) {
			return baseline.NewAllReduce(baseline.Config{Self: c.Self, Deadline: 4 * time.Second})
		}
		for stage := range w.plan.Stages {
			for _, name := range []string{"a", "b"} {
				w.member(name+string(rune('0'+stage)), stage, true, machine)
			}
		}
		w.over()
		w.tell()
		if a := w.accuracy(w.whole().Vector()); a < 0.6 {
			t.Errorf("accuracy %.3f", a)
		}
	})
}

// TestPredictThroughTheStages: outputs are those of the whole model, asked for by any member; and so are the parameters.
func TestPredictThroughTheStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 1, 2))
		for stage := range w.plan.Stages {
			w.member(string(rune('a'+stage)), stage, false, nil)
		}
		x, _ := points(rand.New(rand.NewPCG(4, 4)), 30)
		want := make(tensor.Vector, 30*4)
		w.plan.Whole.Predict(w.plan.Whole.Init(3).Vector(), want, x)
		for _, m := range w.all {
			got, err := m.Predict(t.Context(), x)
			if err != nil || !tensor.Identical(got, want) {
				t.Errorf("%s: %v, other outputs: %t", m.name, err, err == nil)
			}
			whole, err := m.Whole(t.Context())
			if err != nil || !tensor.Identical(whole.Vector(), w.plan.Whole.Init(3).Vector()) {
				t.Errorf("%s: %v, another model: %t", m.name, err, err == nil)
			}
		}
		if _, err := w.all[0].Predict(t.Context(), x[1:]); err == nil {
			t.Error("a part of an example is predicted for")
		}
	})
}

// TestMembersDie: of three stages of two members one member after another dies, and the others go on; once a stage has lost
// its last one, all halt and name it.
func TestMembersDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 1, 2))
		w.flock(2)
		time.Sleep(5 * time.Second)
		done := func() (n uint64) {
			for _, m := range w.all {
				rows, _ := m.Counts()
				n += rows.Done
			}
			return n
		}
		for _, dead := range []int{1, 2} { // one of the first stage, one of the second
			m := w.all[dead]
			w.crash(m)
			before := done()
			time.Sleep(5 * time.Second)
			if n := done() - before; n < 500 { // two of the last stage compute 1,000
				t.Errorf("after the death of %s %d micro-batches came back in 5 s", m.name, n)
			}
		}
		w.crash(w.all[3]) // the last of the second
		var lost *StageLostError
		for _, i := range []int{0, 4, 5} {
			if err := <-w.all[i].failed; !errors.As(err, &lost) || lost.Stage != 1 || lost.Of != 3 {
				t.Errorf("%s: %v", w.all[i].name, err)
			}
		}
		w.all = append(w.all[:1], w.all[4:]...)
		w.tell()
	})
}

// TestTheLastOfAStageDies: a newcomer takes its stage, with the copy that another member kept, and the run goes on.
func TestTheLastOfAStageDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, true, nil)
		w.member("b", 0, true, nil)
		alone := w.member("c", 1, false, nil)
		time.Sleep(20 * time.Second)
		before := make(tensor.Vector, w.plan.Stages[1].Layout().Len())
		w.crash(alone)
		if _, err := alone.trainer.Snapshot(before, 0); err != nil {
			t.Fatal(err)
		}
		accuracy := w.accuracy(w.whole().Vector())
		time.Sleep(5 * time.Second)
		n := w.node("d")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		place, err := Choose(ctx, n, w.plan)
		if err != nil || place.Stage != 1 || place.Params == nil || place.At == 0 {
			t.Fatalf("chose %+v, %v", place, err)
		}
		far := tensor.SquaredDistance(place.Params.Vector(), before)
		if start := tensor.SquaredDistance(w.plan.Init(1, 3).Vector(), before); far > start/4 {
			t.Errorf("the copy is %g from what was lost, the beginning %g", far, start)
		}
		w.all = w.all[:2]
		w.trains("d", n, 1, place.Params, false, nil)
		time.Sleep(20 * time.Second)
		if after := w.accuracy(w.whole().Vector()); accuracy < 0.7 || after < accuracy-0.05 {
			t.Errorf("accuracy %.3f, %.3f after a stage was lost and taken again", accuracy, after)
		}
		w.tell()
	})
}

// TestNewcomersChoose: nodes that choose at the same time are as many for each stage, whatever each sees first.
func TestNewcomersChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 1, 2))
		const nodes = 7
		chosen := make(chan int, nodes)
		for i := range nodes {
			n := w.node(string(rune('a' + i)))
			t.Cleanup(func() { n.Close() })
			go func() {
				place, err := Choose(t.Context(), n, w.plan)
				if err != nil || place.Params != nil {
					t.Errorf("%+v, %v", place, err)
				}
				chosen <- place.Stage
			}()
		}
		counts := make([]int, 3)
		for range nodes {
			counts[<-chosen]++
		}
		if slices.Max(counts) > 3 || slices.Min(counts) < 2 {
			t.Errorf("stages were taken by %v nodes", counts)
		}
	})
}

// TestWhoIsOfAnotherRun is told what differs, and does not wait for a stage.
func TestWhoIsOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		says := func(strategy string) []description.Field {
			return []description.Field{{Name: "strategy", Value: strategy}}
		}
		w.says = says("adpsgd")
		w.member("a", 0, true, nil)
		w.member("b", 1, true, nil)
		w.says = says("allreduce")
		n := w.node("c")
		t.Cleanup(func() { n.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Choose(ctx, n, w.plan)
		if other, is := errors.AsType[*description.MismatchError](err); !is || len(other.Differences) != 1 || !strings.Contains(err.Error(), "strategy") {
			t.Errorf("it chose: %v", err)
		}
	})
}

// TestANewcomerTakesTheBottleneck: the stage that computes fewest micro-batches a second, although another has fewer members.
func TestANewcomerTakesTheBottleneck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, true, nil)
		w.member("b", 1, false, nil)
		w.member("c", 1, false, nil)
		time.Sleep(5 * time.Second)
		n := w.node("d")
		t.Cleanup(func() { n.Close() })
		if place, err := Choose(t.Context(), n, w.plan); err != nil || place.Stage != 1 || place.Params != nil {
			t.Errorf("chose %+v, %v", place, err)
		}
	})
}
