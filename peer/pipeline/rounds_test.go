package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/framed"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

func byAllReduce(c averaging.Config) (averaging.Machine, error) {
	return baseline.NewAllReduce(baseline.Config{Self: c.Self, Deadline: 4 * time.Second})
}

// dataParallel trains the whole model by so many data-parallel members, each with the rows of one of a pipeline.
func (w *world) dataParallel(rows int) tensor.Vector {
	w.t.Helper()
	model, all := w.plan.Whole, make([]*peer.Trainer, rows)
	for i := range all {
		var err error
		n := w.node(fmt.Sprint("whole", i))
		all[i], err = n.Train(w.t.Context(), peer.Training{
			Params: model.Init(3), Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 0.3}, Exchange: peer.Exchange{Machine: byAllReduce}, Work: peer.Work{Steps: 1 << 40},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { all[i].Close(); n.Close() })
	}
	var training sync.WaitGroup
	for i, trainer := range all {
		rng, flow, one, errors := rand.New(rand.NewPCG(uint64(i), 7)), model.Flow(4), make(tensor.Vector, model.Layout().Len()), make(tensor.Vector, 4*4)
		training.Go(func() {
			if err := trainer.WaitTrainers(w.t.Context(), rows); err != nil {
				w.t.Error(err)
			}
			for range w.each {
				err := trainer.Step(w.t.Context(), func(params, grad tensor.Vector) (peer.Result, error) {
					for range 8 {
						x, y := points(rng, 4)
						w.plan.Loss.Gradient(errors, flow.Forward(params, x, 0), y, 1.0/4)
						flow.Backward(params, one, errors, false)
						tensor.Axpy(grad, 1.0/8, one)
					}
					return peer.Result{Samples: 32}, nil
				})
				if err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	training.Wait()
	params := make(tensor.Vector, model.Layout().Len())
	if _, err := all[0].Snapshot(params, 0); err != nil {
		w.t.Fatal(err)
	}
	return params
}

// done waits until all have made their steps.
func (w *world) done() {
	w.t.Helper()
	for _, m := range w.all {
		if err := <-m.failed; err != nil {
			w.t.Errorf("%s: %v", m.name, err)
		}
	}
}

func sum(of []int) (all int) {
	for _, n := range of {
		all += n
	}
	return all
}

// deep is a model of four layers.
func deep(t *testing.T, cuts ...int) Plan {
	t.Helper()
	model, err := nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4)).Build(inputs)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Cut(model, nn.CrossEntropy(), cuts...)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// apart is how far a model is from another, of its length.
func apart(a, b tensor.Vector) float64 {
	return math.Sqrt(tensor.SquaredDistance(a, b) / tensor.SumSquares(b))
}

// TestRoundsAreDataParallel: with rounds, AllReduce in each stage makes of the same rows the model that data-parallel AllReduce makes,
// but for rounding, whoever has which stage, and rows or none.
func TestRoundsAreDataParallel(t *testing.T) {
	for name, c := range map[string]struct {
		cuts    []int
		ends    bool
		members []int // of each part, one after the other
	}{
		"2 x 2":     {[]int{2}, false, []int{2, 2}},
		"4 x 1":     {[]int{1, 3, 4}, false, []int{1, 1, 1, 1}},
		"1 and 3":   {[]int{2}, false, []int{1, 3}},
		"ends stay": {[]int{1, 4}, true, []int{3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, deep(t, c.cuts...))
				w.each, w.least = 12, sum(c.members)
				if c.ends {
					w.plan = ending(t, w.plan)
				}
				sources := 0
				for stage, members := range c.members {
					for i := range members {
						feeds := !c.ends || stage == 0
						if w.member(fmt.Sprintf("s%d.%d", stage, i), stage, feeds, nil); feeds {
							sources++
						}
					}
				}
				w.done()
				w.tell()
				got := w.whole().Vector()
				whole := newWorld(t, w.plan)
				whole.each = w.each
				want := whole.dataParallel(sources)
				off := apart(got, want)
				t.Logf("%s: %.2g apart; from the beginning %.2g", name, off, apart(w.plan.Whole.Init(3).Vector(), want))
				if off > 1e-5 {
					t.Errorf("%.2g from what data-parallel members make", off)
				}
				for _, m := range w.all {
					if rows, stage := m.Counts(); rows.Lost+rows.Again+stage.Lost+stage.Again > 0 {
						t.Errorf("%s: %+v, %+v", m.name, rows, stage)
					}
				}
			})
		})
	}
}

// rounding makes a flock that goes on by rounds, without end: so many members for each stage, all of which have rows.
func rounding(t *testing.T, plan Plan, each int) *world {
	w := newWorld(t, plan)
	w.each, w.least = math.MaxInt, each*plan.Parts()
	w.flock(each)
	return w
}

// steps are how many each member has made.
func (w *world) made() (steps []uint64) {
	for _, m := range w.all {
		steps = append(steps, m.trainer.Stats().Steps)
	}
	return steps
}

// lives checks that members make steps, all as many, and that those of a stage have one model.
func (w *world) lives(for_ time.Duration, least uint64) {
	w.t.Helper()
	before := w.made()
	time.Sleep(for_)
	for i, after := range w.made() {
		if after < before[i]+least {
			w.t.Errorf("%s has made %d steps in %s, want %d", w.all[i].name, after-before[i], for_, least)
		}
	}
	for _, m := range w.all {
		select {
		case err := <-m.failed:
			w.t.Errorf("%s: %v", m.name, err)
		default:
		}
	}
}

// TestAMemberDiesInARound: the others end the round without it, and go on.
func TestAMemberDiesInARound(t *testing.T) {
	for _, dead := range []int{0, 3} { // of the first stage, of the last
		synctest.Test(t, func(t *testing.T) {
			w := rounding(t, perceptron(t, 2), 2)
			time.Sleep(5 * time.Second)
			w.crash(w.all[dead])
			w.all = append(w.all[:dead:dead], w.all[dead+1:]...)
			time.Sleep(10 * time.Second) // until the others know
			w.lives(5*time.Second, 15)
			w.tell()
			if a := w.accuracy(w.whole().Vector()); a < 0.6 {
				t.Errorf("accuracy %.3f", a)
			}
		})
	}
}

// TestWhoComesInRounds: a newcomer takes part in the rounds of a stage that others have, and in those of one that it has alone, since its last
// member has died. It makes its own micro-batches from its second round on.
func TestWhoComesInRounds(t *testing.T) {
	for name, dies := range map[string]bool{"with others": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, perceptron(t, 2))
				w.each, w.least = math.MaxInt, 3
				w.member("a", 0, true, nil)
				w.member("b", 0, true, nil)
				c := w.member("c", 1, true, nil)
				time.Sleep(20 * time.Second)
				if dies {
					w.crash(c)
					w.all = w.all[:2]
					time.Sleep(10 * time.Second)
				}
				n, params, stage := w.node("d"), w.plan.Init(1, 3), 1
				place, err := Choose(t.Context(), n, w.plan)
				if err != nil || dies && (place.Stage != 1 || place.Params == nil) {
					t.Fatalf("chose %+v, %v", place, err)
				}
				if dies {
					params = place.Params
				}
				d := w.trains("d", n, stage, params, true, nil)
				time.Sleep(10 * time.Second)
				rows, at := d.Counts()
				w.lives(10*time.Second, 30)
				w.tell()
				again, now := d.Counts()
				if again.Done < rows.Done+100 || now.Done < at.Done+300 {
					t.Errorf("of the newcomer's rows %d are back in 10 s, and it has computed %d", again.Done-rows.Done, now.Done-at.Done)
				}
				for _, m := range w.all {
					if rows, _ := m.Counts(); rows.Lost > rows.Came/50 {
						t.Errorf("%s has lost %d of %d micro-batches", m.name, rows.Lost, rows.Came)
					}
				}
				if a := w.accuracy(w.whole().Vector()); a < 0.6 {
					t.Errorf("accuracy %.3f", a)
				}
			})
		})
	}
}

// spoiling is a loss whose errors are so large, once it is due, that no step can be made of them.
type spoiling struct {
	nn.Loss
	due *atomic.Int64
}

func (s spoiling) Gradient(errors, outputs, targets tensor.Vector, scale float64) float64 {
	loss := slow{s.Loss}.Gradient(errors, outputs, targets, scale)
	if s.due.Add(-1) == 0 {
		errors[0] = 1e25
	}
	return loss
}

// TestAStepThatIsNotFiniteInARound is left out at its member, which then has nothing for the mean of its stage, and holds nobody up.
func TestAStepThatIsNotFiniteInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, due := perceptron(t, 2), new(atomic.Int64)
		plan.Loss = spoiling{nn.CrossEntropy(), due}
		due.Store(200)
		w := rounding(t, plan, 2)
		time.Sleep(10 * time.Second)
		if due.Load() >= 0 {
			t.Fatal("nothing was spoilt")
		}
		w.lives(5*time.Second, 15)
		steps := w.made()
		if slices.Max(steps) > slices.Min(steps)+1 {
			t.Errorf("steps %v", steps)
		}
		if a := w.accuracy(w.whole().Vector()); a < 0.5 {
			t.Errorf("accuracy %.3f", a)
		}
	})
}

// TestAMemberThatStepsNoMore, and stays, is left out once nothing has moved for Patience.
func TestAMemberThatStepsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rounding(t, perceptron(t, 2), 2)
		time.Sleep(5 * time.Second)
		w.each = 5
		if err := <-w.member("idle", 1, false, nil).failed; err != nil {
			t.Fatal(err)
		}
		w.all = w.all[:4]
		steps := w.made()
		time.Sleep(w.all[0].with.Patience / 2)
		if now := w.made(); now[0] > steps[0]+1 {
			t.Errorf("it is not waited for: %d steps", now[0]-steps[0])
		}
		time.Sleep(w.all[0].with.Patience)
		w.lives(5*time.Second, 10)
	})
}

// TestWhoLingersFollowsRounds: the run is over for one member in the middle of a round, whose micro-batches and those of later rounds
// it goes on computing, though it makes no steps.
func TestWhoLingersFollowsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rounding(t, perceptron(t, 2), 2)
		time.Sleep(5 * time.Second)
		over := w.all[0]
		for due := true; due; time.Sleep(time.Millisecond) { // in the middle of a round
			over.mu.Lock()
			if due = over.rounds.stages[0].desk.due; !due {
				over.rounds.end()
			}
			over.mu.Unlock()
		}
		w.all = w.all[2:] // its fellow waits for its gradient, since the run is over for the pipeline alone: both are left out, one after the other
		time.Sleep(3 * over.with.Patience)
		_, before := over.Counts()
		w.lives(5*time.Second, 10)
		if _, after := over.Counts(); after.Done < before.Done+10 {
			t.Errorf("it has computed %d micro-batches for the others", after.Done-before.Done)
		}
	})
}

// TestRoundsAreForAll: members without rounds are told why what they send is refused, and an algorithm that makes a step of each gradient
// has none.
func TestRoundsAreForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		w.member("a", 0, true, nil)
		w.each, w.least = math.MaxInt, 2
		b := w.member("b", 1, false, nil)
		time.Sleep(5 * time.Second)
		if _, stage := b.Counts(); stage.Came > 0 {
			t.Errorf("it takes micro-batches of no round: %+v", stage)
		}
		for _, m := range []wire.Batch{{Kind: wire.BatchRound, Stage: 2}, {Stage: 1, Codec: raw().ID(), Round: 1, Examples: 1, Values: inputs, Targets: 1}} {
			err := b.service.Ask(t.Context(), w.all[0].node.Self(), func(s *framed.Stream) error {
				err := framed.Say(s, 0, m)
				if err == nil {
					_, err = readOutcome(s, raw())
				}
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "are for all members of a run, or for none") {
				t.Errorf("%+v: %v", m, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, perceptron(t, 2))
		n := w.node("a")
		trainer, err := n.Train(t.Context(), peer.Training{Params: w.plan.Init(0, 3), Stage: w.plan.Stage(0), Optimizer: &optim.SGD{}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(n, trainer, Config{Plan: w.plan, Rounds: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close(); trainer.Close(); n.Close() })
		if err := p.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "such as AllReduce") {
			t.Errorf("by pairs: %v", err)
		}
	})
}
