package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/description"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const inputs = 8

// perceptron is a model of three layers, cut where tests say.
func perceptron(t testing.TB, cuts ...int) Plan {
	t.Helper()
	model, err := nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 4)).Build(inputs)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := Cut(model, slow{nn.CrossEntropy()}, cuts...)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// slow is a loss that takes time, as the last stage does then.
type slow struct{ nn.Loss }

func (s slow) Gradient(errors, outputs, targets tensor.Vector, scale float64) float64 {
	time.Sleep(10 * time.Millisecond)
	return s.Loss.Gradient(errors, outputs, targets, scale)
}

// points are examples: points, and which of four curved regions each lies in.
func points(rng *rand.Rand, n int) (x, y tensor.Vector) {
	for range n {
		row := make(tensor.Vector, inputs)
		for c := range row {
			row[c] = float32(rng.NormFloat64())
		}
		scores := tensor.Vector{row[0] + row[1]*row[2], row[3] - row[4], row[5]*row[0] + row[6], row[7] - row[2]}
		x, y = append(x, row...), append(y, float32(nn.Argmax(scores)))
	}
	return x, y
}

// world is a run of members that train stages, over a network in memory.
type world struct {
	t      *testing.T
	net    *memnet.Network
	plan   Plan
	codec  quant.Codec
	steps  uint64 // of all members
	once   bool   // each makes one, and micro-batches go one after the other
	each   int    // steps of each, in a run of rounds, if not 0
	least  int    // members that are waited for before the first
	log    bool
	spoils uint64 // each so many micro-batches holds NaN, if not 0
	seeds  []string
	says   []description.Field //  what the run is, of members that come
	taps   *tap                // what is written, if not nil
	all    []*member
}

// member is one of a world.
type member struct {
	name    string
	node    *peer.Node
	trainer *peer.Trainer
	*Pipeline
	failed chan error // how its steps ended
	steps  sync.WaitGroup
	fed    atomic.Uint64
}

func newWorld(t *testing.T, plan Plan) *world {
	return &world{t: t, net: memnet.New(memnet.Config{Link: memnet.Link{Delay: time.Millisecond}}), plan: plan, steps: 1 << 40, codec: raw()}
}

// node makes a member that does not train yet.
func (w *world) node(name string) *peer.Node {
	w.t.Helper()
	network := peer.Network{Run: "stages", Join: w.seeds, Description: w.says}
	if w.log {
		network.Log = zaptest.NewLogger(w.t)
	}
	tr, err := w.net.Transport(name)
	if err != nil {
		w.t.Fatal(err)
	}
	if network.Membership, err = w.net.Membership(tr, network.Run); err != nil {
		w.t.Fatal(err)
	}
	if network.Transport = tr; w.taps != nil {
		network.Transport = tapped{tr, w.taps}
	}
	w.t.Cleanup(func() { tr.Close() })
	n, err := peer.Join(w.t.Context(), network)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.seeds == nil {
		w.seeds = n.JoinAddresses()[:1]
	}
	return n
}

// member makes a member of a stage, and has it step until the run is over or it fails. Feeds is whether it has rows.
func (w *world) member(name string, stage int, feeds bool, machine func(averaging.Config) (averaging.Machine, error)) *member {
	w.t.Helper()
	return w.trains(name, w.node(name), stage, w.plan.Init(stage, 3), feeds, machine)
}

func (w *world) trains(name string, n *peer.Node, stage int, params *tensor.Params, feeds bool, machine func(averaging.Config) (averaging.Machine, error)) *member {
	w.t.Helper()
	m := &member{name: name, node: n, failed: make(chan error, 1)}
	var err error
	if w.each > 0 {
		machine = byAllReduce
	}
	m.trainer, err = n.Train(w.t.Context(), peer.Training{
		Params: params, Stage: w.plan.Stage(stage), Optimizer: &optim.SGD{}, Schedule: optim.Schedule{Rate: 0.3},
		Exchange: peer.Exchange{Pace: averaging.Pace{Every: 4}, Machine: machine}, Work: peer.Work{Steps: w.steps},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	c := Config{Plan: w.plan, Stage: stage, Examples: 4, Batch: 8, Codec: w.codec, Patience: 20 * time.Second}
	if w.log {
		c.Log = zaptest.NewLogger(w.t).With()
	}
	if w.once {
		c.Window = 1
	}
	c.Rounds = w.each > 0
	if feeds {
		rng := rand.New(rand.NewPCG(uint64(len(w.all)), 7))
		c.Feed = func(ctx context.Context) (x, y tensor.Vector, err error) {
			fed := m.fed.Add(1)
			if x, y = points(rng, 4); w.spoils > 0 && fed%w.spoils == 0 {
				x[3] = float32(math.NaN())
			}
			return x, y, ctx.Err()
		}
	}
	if m.Pipeline, err = New(n, m.trainer, c); err != nil {
		w.t.Fatal(err)
	}
	w.all = append(w.all, m)
	w.t.Cleanup(func() { w.leave(m) })
	each, least := w.each, w.least // a test may change them for others
	m.steps.Go(func() {
		err := m.trainer.WaitTrainers(context.Background(), least)
		if err == nil {
			err = m.Step(context.Background())
		}
		for made := 1; err == nil && !w.once && made != each; made++ {
			err = m.Step(context.Background())
		}
		m.failed <- err
		if errors.Is(err, peer.ErrRunOver) {
			_ = m.Linger(context.Background()) // which ends with the pipeline
		}
	})
	return m
}

// leave closes a member.
func (w *world) leave(m *member) {
	if err := errors.Join(m.Pipeline.Close(), m.trainer.Close(), m.node.Close()); err != nil {
		w.t.Errorf("%s: %v", m.name, err)
	}
	m.steps.Wait()
}

// crash has a member vanish without a word.
func (w *world) crash(m *member) { w.net.Crash(m.node.Self()) }

// whole joins the mean parameters of the members of each stage.
func (w *world) whole() *tensor.Params {
	w.t.Helper()
	parts := make([]tensor.Vector, w.plan.Parts())
	for stage := range parts {
		parts[stage] = make(tensor.Vector, w.plan.length(stage))
		var n float32
		for _, m := range w.all {
			if m.Pipeline.with.Stage != stage {
				continue
			}
			own := make(tensor.Vector, len(parts[stage]))
			if _, err := m.trainer.Snapshot(own, 0); err != nil {
				w.t.Fatal(err)
			}
			n++
			tensor.Add(parts[stage], own)
		}
		tensor.Scale(parts[stage], 1/n)
	}
	whole, err := w.plan.Join(parts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return whole
}

// accuracy is how many of 1,000 points a whole model tells right.
func (w *world) accuracy(params tensor.Vector) float64 {
	x, y := points(rand.New(rand.NewPCG(1, 2)), 1000)
	out := make(tensor.Vector, 1000*4)
	w.plan.Whole.Predict(params, out, x)
	right := 0
	for i, label := range y {
		if nn.Argmax(out[4*i:4*i+4]) == int(label) {
			right++
		}
	}
	return float64(right) / 1000
}

// flock makes members for each stage, all of which have rows, unless these stay.
func (w *world) flock(each int) {
	for stage := range w.plan.Parts() {
		for i := range each {
			w.member(fmt.Sprintf("s%d.%d", stage, i), stage, stage == 0 || !w.plan.ends, nil)
		}
	}
}
