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

	came    bool // has taken part
	began   bool // has begun a step that is not counted yet
	replay  int  // steps begun in all its lives
	ends    time.Duration
	waited  time.Duration
	stepped bool
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
	p.optimizer, p.began, p.stepped = t.Optimizer(), false, false
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
	t.record.step(now, i, took)
	p.began, p.ends = true, now+took
	return took
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

// Step implements sim.Trainer.
func (t *trainer) Step(i, step int, x, delta []float32) {
	t.Gradient(i, step, x, delta)
	t.makeStep(i, x, delta)
}

// Gradient fills grad with the gradient of a peer's next batch. It touches nothing that
// is not the peer's.
func (t *trainer) Gradient(i, step int, x, grad []float32) (samples int) {
	p := &t.peers[i]
	clear(grad)
	result, err := t.Task.Gradient(i, x, grad)
	if err == nil && !tensor.Finite(grad) {
		err = fmt.Errorf("the gradient: %w", peer.ErrNotFinite)
	}
	if err != nil {
		p.fault = fmt.Errorf("step %d of peer %d: %w", step+1, i, err)
		clear(grad)
		return 0
	}
	if !p.learned {
		p.loss, p.learned = result.Loss, true
	}
	p.loss += smoothing * (result.Loss - p.loss)
	p.samples += uint64(result.Samples)
	return result.Samples
}

// makeStep turns a gradient into a step from x.
func (t *trainer) makeStep(i int, x, grad tensor.Vector) {
	p := &t.peers[i]
	if p.fault != nil {
		t.fail(p.fault)
	}
	p.optimizer.Delta(grad, x, t.Schedule.RateAt(t.progress()))
	if !tensor.Finite(grad) {
		t.fail(fmt.Errorf("a step of peer %d: %w", i, peer.ErrNotFinite))
		clear(grad)
	}
	if pace := t.Exchange.Pace; pace.Drift > 0 || pace.Consensus {
		length := tensor.Norm2(grad)
		if !p.stepped {
			p.stride, p.stepped = length, true
		}
		p.stride += smoothing * (length - p.stride)
	}
}

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

// aware makes a machine an informed one of the same kind.
func aware(m averaging.Machine, r *running, i int) averaging.Machine {
	if _, gradients := m.(averaging.GradientMachine); gradients {
		return &informedGradient{informed{m, r, i}}
	}
	return &informed{m, r, i}
}

// Handle implements averaging.Machine.
func (m *informed) Handle(now time.Duration, e averaging.Event, actions []averaging.Action) []averaging.Action {
	if pace := m.Exchange.Pace; e.Kind == averaging.StepDone && (pace.Drift > 0 || pace.Consensus) {
		e.Stride, e.Progress = m.trainer.peers[m.peer].stride, m.trainer.progress()
		if e.Stride > 0 {
			e.Moved = m.replicas[m.peer].Moved() / e.Stride
		}
	}
	before := len(actions)
	actions = m.Machine.Handle(now, e, actions)
	for _, a := range actions[before:] {
		if a.Kind == averaging.Propose {
			m.record.proposed(now, m.peer, a.Peer)
		}
	}
	return actions
}
