package peer

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/flock"
	"github.com/seed-97356399/murmuration/internal/links"
	"github.com/seed-97356399/murmuration/internal/orders"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/until"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// Training says what a trainer trains, and how. Params is required; the other fields have useful zero
// values.
type Training struct {
	// Params is the model with its initial values, which are the same at all members that train. The
	// trainer owns the vector from then on: read it with Snapshot.
	Params *tensor.Params
	// Stage says which part of a larger model Params are. Default: the whole.
	Stage Stage
	// Checkpoint is the history of Params if they come from a checkpoint of this run.
	// Default: none, Params are the run's initial values.
	Checkpoint Checkpoint
	// Optimizer turns gradients into steps. Default: SGD with momentum 0.9. If it is an
	// optim.Validator, Train returns the faults that it reports.
	Optimizer optim.Optimizer
	// Schedule is the learning rate over the progress of the whole flock.
	Schedule optim.Schedule
	// Exchange says how often and how models are averaged.
	Exchange Exchange
	// Work says when the run is over. Default: never.
	Work Work
	// Hooks are callbacks for exchanges, quarantines and commands.
	Hooks Hooks
}

// Exchange says how often and how models are averaged.
type Exchange struct {
	// Pace says when this peer initiates exchanges. Default: the measured link and
	// step times decide, so that communication stays hidden behind computation.
	Pace averaging.Pace
	// Codec says how slices are coded. Default: raw.
	Codec quant.Policy
	// SliceLen is the number of values in a slice, the same for all peers of a
	// run. Default: 32,768 (128 KiB).
	SliceLen int
	// Lanes is the number of connections that an exchange may use at once, 1 to 8, over
	// several addresses of the partner where it has them; if two peers differ, the smaller
	// number counts. Default: 1, which is best where two busy cores are the limit, and 4
	// where the link to the partner is both fast and long: 256 KiB or more in flight, and 4
	// MiB or more in an exchange. On links that limit each connection, k lanes are up to k
	// times as fast.
	Lanes int
	// Deadline bounds an exchange. An exchange with a known partner is given up sooner:
	// once it takes several times longer than earlier ones. Default: 30 s.
	Deadline time.Duration
	// Topology is the shape of the links, the same at all members. Default: topology.Exponential.
	Topology topology.Shape
	// Machine makes the algorithm that decides who exchanges with whom. Default:
	// averaging.NewADPSGD.
	Machine func(averaging.Config) (averaging.Machine, error)
	// Final merges all models into one at the end of the run, with the same bytes for everybody. It works with
	// AD-PSGD and other machines that send no messages. Its Self is set by the peer. Default: each peer keeps its own
	// model.
	Final *merge.Config
}

// NewMachine makes the machine of a peer, for callers that drive a machine without a peer.
func (x Exchange) NewMachine(self transport.PeerID, chance *rand.Rand) (machine averaging.Machine, err error) {
	config := averaging.Config{Self: self, Pace: x.Pace, Deadline: x.Deadline, Rand: chance}
	if x.Machine == nil {
		machine, err = averaging.NewADPSGD(config)
	} else {
		machine, err = x.Machine(config)
	}
	if err != nil || x.Final == nil {
		return machine, err
	}
	final := *x.Final
	final.Self = self
	return merge.New(final, machine)
}

// Work says how much the flock has to do. If both numbers are given, the run is over when
// either is reached, or sooner by Until. The excess is small (docs/design/003): with equally fast peers at most
// one step each, if the work cannot be divided evenly; if speeds change or members die near
// the end, the steps of about a second.
type Work struct {
	// Steps is the number of gradient steps of all peers together.
	Steps uint64
	// StepsPerPeer is the number of gradient steps per peer: the work is StepsPerPeer times
	// the most peers that were members at once, however unequal their shares.
	StepsPerPeer uint64
	// Until ends the run sooner, when the model is good enough or time is up. Default: it does not.
	Until Until
	// Grace bounds how long Close goes on serving exchanges once the run is over
	// here, until it is over everywhere. Default: 10 s.
	Grace time.Duration
}

// Exchanged describes an exchange that has ended.
type Exchanged struct {
	// Partner is the other peer; Inbound tells whether the partner initiated the exchange.
	Partner transport.PeerID
	Inbound bool
	// Distance is the distance between the two models before the exchange.
	Distance float64
	// Bytes is what was sent and received, headers included.
	Bytes uint64
	// Took is the time from the proposal to the last acknowledgement.
	Took time.Duration
	// Err is why the exchange broke off, nil if it was completed: if not nil, only Partner and
	// Inbound are set.
	Err error
}

// Defaults of Config and its parts.
const (
	// WideLanes is the default of Exchange.Lanes for a link that is fast and long.
	WideLanes    = links.WideLanes
	DefaultGrace = 10 * time.Second
)

// faults are all that is wrong.
func (t Training) faults() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	layout := layoutOf(t.Params)
	switch {
	case t.Params == nil:
		fault("Params is missing: give the model that is trained. A member without one is made by Join")
	case layout == nil:
		fault("Params has no layout: give the model with its initial values, made by tensor.NewParams or tensor.WrapParams")
	case !tensor.Finite(t.Params.Vector()):
		fault("Params holds NaN or infinite values")
	case !sharesAnything(layout):
		fault("Params: no range of the layout is shared, so there is nothing to exchange")
	}
	x := t.Exchange
	if err := x.Codec.Validate(layout); err != nil {
		fault("Exchange.Codec: %w", err)
	}
	if x.SliceLen < 0 || x.SliceLen > replica.MaxSliceLen {
		fault("Exchange.SliceLen is %d: want 1 to %d values, or 0 for the default", x.SliceLen, replica.MaxSliceLen)
	}
	if x.Lanes < 0 || x.Lanes > replica.MaxLanes {
		fault("Exchange.Lanes is %d: want 1 to %d connections, or 0 for the default", x.Lanes, replica.MaxLanes)
	}
	if err := x.Pace.Validate(); err != nil {
		fault("Exchange.Pace: %w", err)
	}
	if !slices.Contains(topology.Shapes(), x.Topology) {
		fault("Exchange.Topology is %d: want one of %v", x.Topology, topology.Shapes())
	}
	if err := t.Stage.validate(layout); err != nil {
		faults = append(faults, err)
	}
	if x.Deadline < 0 || t.Work.Grace < 0 {
		fault("Exchange.Deadline %s and Work.Grace %s: neither may be negative", x.Deadline, t.Work.Grace)
	}
	if err := t.Work.Until.validate(); err != nil {
		faults = append(faults, err)
	}
	if err := t.Checkpoint.is.validate(); err != nil {
		fault("Checkpoint: %w", err)
	}
	if err := t.Schedule.Validate(); err != nil {
		fault("Schedule: %w", err)
	}
	if o, can := t.Optimizer.(optim.Validator); can {
		if err := o.Validate(layout); err != nil {
			fault("Optimizer: %w", err)
		}
	}
	return faults
}

// ready prepares a machine for a model.
func ready(made averaging.Machine, model *replica.Replica, with *links.Links) (collective.Machine, error) {
	machine := collective.Of(made)
	traits := machine.Traits()
	if traits.Size != nil {
		traits.Size.SetLength(model.SharedLen(), traits.Gradients && with.Rounds())
	}
	if traits.Gradients {
		return machine, with.OneWay()
	}
	return machine, nil
}

func layoutOf(params *tensor.Params) *tensor.Layout {
	if params == nil {
		return nil
	}
	return params.Layout()
}

func sharesAnything(layout *tensor.Layout) bool {
	for i := range layout.Count() {
		if layout.At(i).Sharing == tensor.Shared {
			return true
		}
	}
	return false
}

func (t Training) withDefaults() Training {
	if t.Optimizer == nil {
		t.Optimizer = &optim.SGD{Momentum: optim.DefaultMomentum}
	}
	t.Exchange.Deadline = cmp.Or(t.Exchange.Deadline, averaging.DefaultDeadline)
	t.Work.Grace = cmp.Or(t.Work.Grace, DefaultGrace)
	return t
}

// Result is what a gradient function returns beside the gradient.
type Result struct {
	// Loss is the mean loss over the samples, for Stats.
	Loss float64
	// Samples is the number of samples over which the gradient is the mean.
	Samples int
	// Empty says that there were no samples, and so no gradient: the step counts, and the mean of an algorithm that averages
	// gradients is that of the others. Of use to such algorithms alone.
	Empty bool
}

// Accumulate makes a gradient function for Step that calls gradient so many times at the
// same parameters, for one batch each, and gives the mean over the samples of all: a step of
// a batch that is larger than memory allows. Statistics change by the mean too, as if there
// had been one batch. A batch of 0 samples counts as one sample, unless it is Empty: report
// the samples of all batches, or of none. Each call gets a zeroed gradient, and must not write to x, nor call
// Trainer.Ready or Trainer.Factors, to which one batch would be the whole step. An error
// ends the step. The function keeps one more vector as long as the model, and allocates
// nothing after that. Use it for one peer only.
func Accumulate(batches int, gradient func(x, grad tensor.Vector) (Result, error)) func(x, grad tensor.Vector) (Result, error) {
	var next tensor.Vector
	return func(x, grad tensor.Vector) (Result, error) {
		whole, err := gradient(x, grad)
		if batches <= 1 || err != nil || whole.Samples < 0 {
			return whole, err
		}
		if len(next) != len(grad) {
			next = make(tensor.Vector, len(grad))
		}
		first := float64(max(whole.Samples, 1))
		weight := first
		whole.Loss *= first
		for batch := 1; batch < batches; batch++ {
			clear(next)
			one, err := gradient(x, next)
			if err != nil {
				return Result{}, fmt.Errorf("batch %d of %d: %w", batch+1, batches, err)
			}
			if one.Samples < 0 {
				return one, nil // which Step refuses
			}
			if one.Empty {
				continue
			}
			samples := float64(max(one.Samples, 1))
			if whole.Empty { // so far
				whole, first, weight = Result{}, samples, 0
				clear(grad)
			}
			tensor.Axpy(grad, float32(samples/first), next)
			weight += samples
			whole.Loss += samples * one.Loss
			whole.Samples += one.Samples
		}
		tensor.Scale(grad, float32(first/weight))
		whole.Loss /= weight
		return whole, nil
	}
}

// work is the work of the flock, and how much of it is done.
type work struct {
	flock  *flock.Flock
	orders *orders.Orders
	until  *evaluations
	log    *zap.Logger
}

// finished tells whether the flock has done its work.
func (w work) finished() bool {
	if _, stopped := w.orders.Stopped(); stopped || w.until.ended.Load() != 0 {
		return true
	}
	target := w.target()
	return target > 0 && w.flock.Total() >= target
}

// may tells whether this peer may take another step now, or must first wait for news of the others' progress.
func (w work) may(now time.Time) bool {
	target := w.target()
	return target == 0 || !w.flock.Waits() || w.flock.May(target, now)
}

// conclude notes that the run is over, after the last step. It returns true to its first caller.
func (w work) conclude() bool {
	if !w.flock.Finish() {
		return false
	}
	w.flock.Wait(true) // the others may be waiting for its last steps
	w.orders.Release()
	_, stopped := w.orders.Stopped()
	w.log.Info("the run is over", zap.Bool("stopped_by_operator", stopped), zap.String("stopped_by", w.stoppedBy()),
		zap.Uint64("own_steps", w.flock.Steps()), zap.Uint64("flock_steps", w.flock.Total()))
	return true
}

// progress is the share of the flock's work that is done, 0 if there is no end.
func (w work) progress() float64 {
	target := w.target()
	if target == 0 {
		return 0
	}
	return min(float64(w.flock.Total())/float64(target), 1)
}

// target is the number of steps that the flock is to take, 0 if there is no end.
func (w work) target() uint64 {
	return w.orders.At(w.flock.Total()).Target(w.flock.Participants())
}

// stoppedBy is why the run is over, empty if it is not: see stats.Peer.
func (w work) stoppedBy() string {
	_, stopped := w.orders.Stopped()
	switch why := until.Reason(w.until.ended.Load()); {
	case !w.flock.IsOver():
		return ""
	case stopped:
		return "operator"
	case why != until.GoesOn:
		return why.String()
	}
	return "work"
}

// runOver is ErrRunOver, with the reason if it is not that the work is done.
func (w work) runOver() error {
	why, stopped := w.orders.Stopped()
	switch early := until.Reason(w.until.ended.Load()); {
	case !stopped && early != until.GoesOn:
		return fmt.Errorf("%w before its work is done: %s", ErrRunOver, early)
	case !stopped:
		return ErrRunOver
	case why == "":
		return fmt.Errorf("%w: the operator has stopped it", ErrRunOver)
	}
	return fmt.Errorf("%w: the operator has stopped it: %s", ErrRunOver, why)
}
