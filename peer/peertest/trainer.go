package peertest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// trainer computes the peers' steps.
type trainer struct {
	*running
	peers []pupil
	made  uint64 // steps of all peers
	taken int    // peers that have taken part
}

// pupil is what a peer needs to compute. What gradients touch is the peer's own, since
// several may be computed at once.
type pupil struct {
	pace      *rand.Rand
	optimizer peer.Optimizer
	x         tensor.Vector // scratch
	loss      float64       // a running mean
	learned   bool          // there is a loss
	samples   uint64
	stride    float64 // a running mean of the lengths of steps
	fault     error

	averages bool                 // its machine averages gradients
	sizer    averaging.BatchSizer // nil unless the machine says how many samples to take
	batch    int                  // samples of the step in the making, 0 if that is left to the task
	came     bool                 // has taken part
	began    bool                 // has begun a step that is not counted yet
	replay   int                  // steps begun in all its lives
	ends     time.Duration
	waited   time.Duration
	stepped  bool // there is a stride
	relative speed
}

// smoothing is the weight of a new sample in running means.
const smoothing = 0.1

func newTrainer(r *running) *trainer {
	t := &trainer{running: r, peers: make([]pupil, r.Peers)}
	for i := range t.peers {
		t.peers[i].pace = rand.New(rand.NewPCG(r.Seed, chanceOfTime<<32+uint64(i)))
	}
	return t
}

// renew gives peer i, which comes or comes back, an optimizer that knows nothing.
func (t *trainer) renew(i int) {
	p := &t.peers[i]
	p.optimizer, p.began, p.stepped, p.relative = t.Optimizer(), false, false, speed{total: t.made}
	if !p.came {
		p.came = true
		t.taken++
	}
}

// target is the number of steps that there are to make.
func (t *trainer) target() uint64 { return t.Simulation.target(t.taken) }

// progress is the share of the work that is done.
func (t *trainer) progress() float64 { return min(float64(t.made)/float64(t.target()), 1) }

// Duration implements sim.Trainer. A step counts as made when the next one begins: when
// the algorithm lets the peer go on.
func (t *trainer) Duration(i, _ int) time.Duration {
	p, now := &t.peers[i], t.world.Now()
	if p.began {
		p.waited += now - p.ends
		t.made++
		t.advanced()
	}
	took := t.draw(i, now)
	t.record.step(now, i, took) // as it would be with Compute.Samples: a replay may divide them otherwise
	if p.batch = p.wish(); p.batch > 0 && t.World.Compute.Samples > 0 {
		took = took * time.Duration(p.batch) / time.Duration(t.World.Compute.Samples)
	}
	p.began, p.ends = true, now+took
	return took
}

// wish is how many samples the machine wants in the next gradient, 0 if any.
func (p *pupil) wish() int {
	if p.sizer == nil {
		return 0
	}
	return p.sizer.Batch()
}

// draw is how long the next step of a peer takes.
func (t *trainer) draw(i int, now time.Duration) time.Duration {
	p, c := &t.peers[i], t.World.Compute
	p.replay++
	if t.World.Replay != nil {
		return t.World.Replay.at(i, p.replay-1)
	}
	took := float64(c.Step) * (1 + c.Jitter*(2*p.pace.Float64()-1))
	if factor, slow := c.Slow[i]; slow {
		took *= factor
	}
	for _, phase := range c.Phases {
		if phase.Peer == i && now >= phase.From && now < phase.Until {
			took *= phase.Factor
		}
	}
	return time.Duration(took)
}

// Step implements sim.Trainer. A sim.GradientTrainer is never asked for one.
func (t *trainer) Step(i, step int, x, delta []float32) {
	grad := make(tensor.Vector, len(delta))
	t.Gradient(0, i, step, x, grad)
	t.Delta(i, 0, x, grad, delta)
}

// Gradient implements sim.GradientTrainer. It touches nothing that is not the peer's.
func (t *trainer) Gradient(_, i, step int, x, grad []float32) (samples int) {
	p := &t.peers[i]
	clear(grad)
	result, err := t.Task.Gradient(i, p.batch, x, grad)
	if err == nil && !tensor.Finite(grad) {
		err = fmt.Errorf("the gradient: %w", peer.ErrNotFinite)
	}
	if err != nil {
		p.fault = fmt.Errorf("step %d of peer %d: %w", step+1, i, err)
		clear(grad)
		return 1
	}
	if !p.learned {
		p.loss, p.learned = result.Loss, true
	}
	p.loss += smoothing * (result.Loss - p.loss)
	p.samples += uint64(result.Samples)
	if lie, lies := t.lies[i]; lies && p.averages {
		lie.tell(p.pace, grad)
	}
	return result.Samples
}

// Delta implements sim.GradientTrainer.
func (t *trainer) Delta(i int, progress float64, x, grad, delta []float32) {
	p := &t.peers[i]
	if progress == 0 {
		progress = t.progress()
	}
	copy(delta, grad)
	p.optimizer.Delta(delta, x, t.Schedule.RateAt(progress))
	if p.fault != nil {
		t.fail(p.fault)
	}
	if !tensor.Finite(delta) || t.replicas[i].Believed(delta) != nil {
		t.fail(fmt.Errorf("a step of peer %d: %w, or so long that nobody would take the model: lower the learning rate", i, peer.ErrNotFinite))
		clear(delta)
	}
	if pace := t.Exchange.Pace; pace.Drift > 0 || pace.Consensus {
		length := tensor.Norm2(delta)
		if !p.stepped {
			p.stride, p.stepped = length, true
		}
		p.stride += smoothing * (length - p.stride)
	}
}

// Forget implements sim.Forgetter.
func (t *trainer) Forget(i int) {
	if o, ok := t.peers[i].optimizer.(interface{ Reset() }); ok {
		o.Reset()
	}
}

// Progress implements sim.GradientTrainer: everybody knows what all have done.
func (t *trainer) Progress(int) float64 { return t.progress() }

// sampled is the number of samples of all peers.
func (t *trainer) sampled() (all uint64) {
	for i := range t.peers {
		all += t.peers[i].samples
	}
	return all
}

// meanLoss is the mean of the peers' running means.
func (t *trainer) meanLoss() float64 {
	sum, known := 0.0, 0
	for i := range t.peers {
		if t.peers[i].learned && t.here[i] {
			sum += t.peers[i].loss
			known++
		}
	}
	return sum / float64(known)
}

// informed is a machine that is told, as package peer tells it, how long steps are and
// how far the model has moved; what it proposes is recorded.
type informed struct {
	averaging.Machine
	*running
	peer int
}

// informedGradient is one of a machine that averages gradients.
type informedGradient struct{ informed }

// AveragesGradients implements averaging.GradientMachine.
func (informedGradient) AveragesGradients() {}

// informedPool is one of a machine that makes one model of all in the end.
type informedPool struct{ informed }

// PoolsModels implements averaging.PoolingMachine.
func (informedPool) PoolsModels() {}

// aware makes a machine an informed one of the same kind.
func aware(m averaging.Machine, r *running, i int) averaging.Machine {
	_, gradients := m.(averaging.GradientMachine)
	r.trainer.peers[i].averages = gradients
	r.trainer.peers[i].sizer, _ = m.(averaging.BatchSizer)
	if gradients {
		return &informedGradient{informed{m, r, i}}
	}
	if _, pools := m.(averaging.PoolingMachine); pools {
		return &informedPool{informed{m, r, i}}
	}
	return &informed{m, r, i}
}

// Handle implements averaging.Machine.
func (m *informed) Handle(now time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	if e.Kind == averaging.StepDone && m.Exchange.Pace.BySpeed {
		e.Speed = m.trainer.speed(m.peer)
	}
	if pace := m.Exchange.Pace; e.Kind == averaging.StepDone && (pace.Drift > 0 || pace.Consensus) {
		e.Stride = m.trainer.peers[m.peer].stride
		if e.Stride > 0 {
			e.Moved = m.replicas[m.peer].Moved() / e.Stride
		}
	}
	before := len(actions)
	actions = m.Machine.Handle(now, e, actions)
	for _, a := range actions[before:] {
		if a.Kind == averaging.Propose || a.Kind == averaging.Send {
			m.record.proposed(now, m.peer, a.Peer)
		}
	}
	return actions
}
