package peertest

import (
	"math/rand/v2"
	"time"

	"github.com/seed-97356399/murmuration/internal/ewma"
	"github.com/seed-97356399/murmuration/internal/sim"
)

// trainer computes the peers' steps.
type trainer struct {
	*running
	peers []pupil
	made  uint64 // steps of all peers
	taken int    // peers that have taken part
}

// pupil is the state of one peer's computation. Gradients use only the peer's own state,
// since several may be computed at once.
type pupil struct {
	pace    *rand.Rand
	loss    ewma.Mean
	samples uint64 // of the counted steps
	drawn   uint64 // of the last gradient

	averages bool // its machine averages gradients
	batch    int  // samples of the current step, 0 if the task decides
	came     bool // has taken part
	began    bool // has begun a step that is not counted yet
	replay   int  // steps begun in all its lives
	ends     time.Duration
	waited   time.Duration
}

// lossSmoothing is the weight of a step in the running mean of losses.
const lossSmoothing = 0.1

func newTrainer(r *running) *trainer {
	t := &trainer{running: r, peers: make([]pupil, r.Peers)}
	for i := range t.peers {
		t.peers[i].pace = rand.New(rand.NewPCG(r.Seed, chanceOfTime<<32+uint64(i)))
	}
	return t
}

// renew adds peer i, which comes or comes back.
func (t *trainer) renew(i int, averages bool) {
	p := &t.peers[i]
	p.averages, p.began = averages, false
	if !p.came {
		p.came = true
		t.taken++
	}
}

// target is the total number of steps to make.
func (t *trainer) target() uint64 { return t.Simulation.target(t.taken) }

// progress is the share of the work that is done.
func (t *trainer) progress() float64 { return min(float64(t.made)/float64(t.target()), 1) }

// Duration implements sim.Task. A step counts as made when the next one begins: when
// the algorithm lets the peer go on.
func (t *trainer) Duration(i, _, samples int) time.Duration {
	p, now := &t.peers[i], t.world.Now()
	t.count(i)
	took := t.draw(i)
	// The recorded time is that for Compute.Samples: a replay may divide the samples differently.
	t.record.write(Line{At: now, Did: didStep, Peer: i, Took: took})
	if p.batch = samples; p.batch > 0 && t.World.Compute.Samples > 0 {
		took = took * time.Duration(p.batch) / time.Duration(t.World.Compute.Samples)
	}
	p.began, p.ends = true, now+took
	return took
}

// count counts the last step of a peer.
func (t *trainer) count(i int) {
	if p := &t.peers[i]; p.began {
		p.waited += t.world.Now() - p.ends
		t.made++
		p.samples += p.drawn
		t.advanced()
	}
}

// Readiness implements sim.Gradual.
func (t *trainer) Readiness(int) []sim.Ready {
	if gradual, is := t.Task.(Gradual); is {
		return gradual.Readiness()
	}
	return nil
}

// Factors implements sim.Factored. A lie is no product.
func (t *trainer) Factors(i int) []sim.Factors {
	if factored, is := t.Task.(Factored); is && t.World.Lies[i] == nil {
		return factored.Factors(i)
	}
	return nil
}

// draw is how long the next step of a peer takes.
func (t *trainer) draw(i int) time.Duration {
	p, c := &t.peers[i], t.World.Compute
	p.replay++
	if t.World.Replay != nil {
		return t.World.Replay.at(i, p.replay-1)
	}
	took := float64(c.Step) * (1 + c.Jitter*(2*p.pace.Float64()-1))
	if factor, slow := c.Slow[i]; slow {
		took *= factor
	}
	return time.Duration(min(took, float64(longestRecorded))) // more may be beyond what a duration holds
}

// Gradient implements sim.Task. It uses only the peer's own state.
func (t *trainer) Gradient(_, i, _ int, x, grad []float32) (loss float64, samples int, err error) {
	p := &t.peers[i]
	result, err := t.Task.Gradient(i, p.batch, x, grad)
	if err != nil {
		return 0, 0, err
	}
	p.loss.Add(result.Loss, lossSmoothing)
	p.drawn = uint64(result.Samples)
	if lie, lies := t.World.Lies[i]; lies && p.averages {
		lie(p.pace, grad)
	}
	return result.Loss, result.Samples, nil
}

// Progress implements sim.Task: all peers know the total.
func (t *trainer) Progress(int) float64 { return t.progress() }

// Rate implements sim.Task.
func (t *trainer) Rate(_ int, progress float64) float64 {
	if progress == 0 {
		progress = t.progress()
	}
	return t.Schedule.RateAt(progress)
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
		if t.peers[i].loss.Known() && t.here[i] {
			sum += t.peers[i].loss.Value()
			known++
		}
	}
	return sum / float64(known)
}
