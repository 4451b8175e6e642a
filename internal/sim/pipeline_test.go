package sim_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/tensor"
)

// asTold is a pipeline whose stages have 4, 5, 6 … values, and compute nothing: a stage adds one to each value, and its gradient
// is one for each example.
type asTold struct {
	t       *testing.T
	takes   time.Duration
	made    [16]int // micro-batches of each peer's rows
	most    int     // of each peer; 0: any number
	began   int
	stepped int
}

func (a *asTold) Began(int)            { a.began++ }
func (a *asTold) Stepped(int, float64) { a.stepped++ }
func (a *asTold) Rows(i int) (sim.Parcel, error) {
	if a.made[i]++; a.most > 0 && a.made[i] > a.most {
		return sim.Parcel{}, errors.New("no more rows")
	}
	return sim.Parcel{Values: []float32{float32(i)}, Targets: []float32{float32(i)}, Examples: 2, Bytes: 8}, nil
}

func (a *asTold) Takes(_, _ int, back bool) time.Duration {
	if back {
		return 2 * a.takes
	}
	return a.takes
}
func (a *asTold) Code(values []float32) ([]float32, int) {
	return slices.Clone(values), 4 * len(values)
}
func (a *asTold) Flow(stage int) sim.Flow { return &asToldFlow{asTold: a, stage: stage} }

// asToldFlow is a micro-batch of asTold. It checks that the parameters on the way back are those of the forward pass.
type asToldFlow struct {
	*asTold
	stage int
	seen  []float32
	from  float32
}

func (f *asToldFlow) Forward(params, in []float32, _ uint64) ([]float32, bool) {
	f.seen, f.from = slices.Clone(params), in[0]
	return []float32{in[0] + 1}, true
}

func (f *asToldFlow) Loss(out, targets []float32) (float64, []float32, bool) {
	return float64(out[0] - targets[0]), []float32{1}, true
}

func (f *asToldFlow) Backward(params, sum, errors []float32) ([]float32, bool) {
	if !slices.Equal(params, f.seen) {
		f.t.Errorf("stage %d: forward at %v, back at %v", f.stage, f.seen, params)
	}
	for i := range sum {
		sum[i] += 2
	}
	return []float32{errors[0] + 1}, true
}

// staged is a world of so many peers with as many stages as are said.
func staged(t *testing.T, work *asTold, peers, stages int, change func(*sim.Config)) (*sim.World, []*replica.Replica) {
	t.Helper()
	raw, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e6}, Rand: rand.New(rand.NewPCG(1, 2)), Pipeline: &sim.Pipeline{Batch: 8, Work: work}}
	c.Hooks.Failed = func(peer int, err error) { t.Errorf("peer %d: %v", peer, err) }
	for range stages {
		c.Pipeline.Terms = append(c.Pipeline.Terms, replica.Terms{Plan: coding.Uniform(raw), Window: 4})
	}
	var replicas []*replica.Replica
	for i := range peers {
		layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{4 + i%stages}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := replica.New(tensor.NewParams(layout), replica.Options{Unclipped: true})
		if err != nil {
			t.Fatal(err)
		}
		machine, err := averaging.NewADPSGD(averaging.Config{Self: nameOf(i), Pace: averaging.Pace{Every: 1}, Rand: rand.New(rand.NewPCG(5, uint64(i)))})
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, r)
		c.Members = append(c.Members, sim.Member{ID: nameOf(i), Machine: machine, Replica: r, Ledger: replica.NewLedger(r), Optimizer: asIs{}, Stage: i % stages})
	}
	if change != nil {
		change(&c)
	}
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w, replicas
}

// TestStagesOfAWorld: parameters are those of the forward pass on the way back, though steps and exchanges change them meanwhile;
// members of a stage exchange with each other alone; every step is of eight micro-batches; counts add up, and all are busy.
func TestStagesOfAWorld(t *testing.T) {
	work := &asTold{t: t, takes: 10 * time.Millisecond}
	w, replicas := staged(t, work, 6, 3, func(c *sim.Config) {
		c.Hooks.Finished = func(peer, partner int, _ bool) {
			if peer%3 != partner%3 {
				t.Errorf("peers %d and %d, of other stages, have an exchange", peer, partner)
			}
		}
	})
	w.Run(20 * time.Second)
	w.Finish()
	w.Run(10 * time.Minute) // timers of exchanges are long
	if w.Pending() != 0 {
		t.Errorf("%d events are left", w.Pending())
	}
	steps, exchanges := 0, 0
	for i := range 6 {
		c := w.Counts(i)
		steps, exchanges = steps+c.Steps, exchanges+c.Initiated
	}
	if steps != work.stepped || exchanges < steps/4 {
		t.Errorf("%d steps, of which the task was told %d; %d exchanges", steps, work.stepped, exchanges)
	}
	done := uint64(0)
	for stage := range 3 {
		c := w.StageCounts(stage)
		if done += c.Done; c.Came != c.Done+c.Lost+c.Here || c.Lost > 0 || c.Present != 40*time.Second {
			t.Errorf("stage %d: %+v", stage, c)
		}
		if busy := c.Busy.Seconds() / c.Present.Seconds(); busy < 0.85 || busy > 1 {
			t.Errorf("stage %d is busy for %.3f of the time", stage, busy)
		}
	}
	if c := w.RowCounts(); c.Came != c.Done+c.Here || c.Done < 1000 {
		t.Errorf("rows: %+v", c)
	}
	if least := uint64(8 * steps); done < least || done > least+6*8*2 {
		t.Errorf("%d micro-batches in %d steps of eight", done, steps)
	}
	for i, r := range replicas[:3] {
		x, y := make(tensor.Vector, r.Len()), make(tensor.Vector, r.Len())
		r.Snapshot(x)
		replicas[i+3].Snapshot(y)
		if x[0] == 0 || tensor.SquaredDistance(x, y) > 1e-3*tensor.SumSquares(x) {
			t.Errorf("stage %d: %v and %v", i, x, y)
		}
	}
}

// TestWhoComesTakesTheNeediestStage, and goes on from the copy that a member keeps of one that nobody has.
func TestWhoComesTakesTheNeediestStage(t *testing.T) {
	work := &asTold{t: t, takes: 2 * time.Millisecond}
	w, replicas := staged(t, work, 3, 3, nil)
	w.Run(10 * time.Second)
	if n := w.Neediest(); n < 0 || n > 2 || w.StageCounts(1).Copies == 0 {
		t.Errorf("stage %d; %d copies", n, w.StageCounts(1).Copies)
	}
	x := make(tensor.Vector, 5)
	replicas[1].Snapshot(x)
	w.Crash(1)
	if w.Neediest() != 1 || w.Holders(1) != 0 {
		t.Errorf("stage %d, though nobody has 1", w.Neediest())
	}
	w.Run(20 * time.Second)
	layout, _ := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{5}})
	r, err := replica.New(tensor.NewParams(layout), replica.Options{Unclipped: true})
	if err != nil {
		t.Fatal(err)
	}
	machine, _ := averaging.NewADPSGD(averaging.Config{Self: nameOf(1), Pace: averaging.Pace{Every: 1}, Rand: rand.New(rand.NewPCG(5, 9))})
	m := sim.Member{ID: nameOf(1), Machine: machine, Replica: r, Ledger: replica.NewLedger(r), Optimizer: asIs{}, Stage: 3}
	if err := w.Arrive(1, m); err == nil {
		t.Error("there is no fourth stage")
	}
	m.Stage = 1
	if err := w.Arrive(1, m); err != nil {
		t.Fatal(err)
	}
	w.Run(20*time.Second + 10*time.Millisecond)
	y := make(tensor.Vector, 5)
	if r.Snapshot(y); y[0] == 0 || y[0]/x[0] < 0.7 || y[0]/x[0] > 1 { // both have moved in the same direction all the time
		t.Errorf("it goes on from %v, where %v was lost", y, x)
	}
	before := w.RowCounts().Done
	w.Run(25 * time.Second)
	if done := w.RowCounts().Done - before; done < 300 {
		t.Errorf("%d micro-batches in 5 s after it came", done)
	}
}

func TestFaultsOfStages(t *testing.T) {
	if _, err := sim.New(sim.Config{Pipeline: &sim.Pipeline{}}); err == nil || !strings.Contains(err.Error(), "Terms of at least one stage") {
		t.Errorf("%v", err)
	}
}
