package simulate

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/table"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// Simulated is the task of peers in simulated worlds: a workload for each, with shared data in memory once.
type Simulated struct {
	all        []*dataset.Data
	First      *workload.Workload // of the first peer: its model and the initial values of all
	glance     *dataset.Set       // some of the held-out pictures
	workspaces chan *workspace
}

// workspace is the memory for one computation.
type workspace struct {
	model nets.Model
	batch dataset.Batch
}

const (
	// maxWorkspaces bounds the workspaces that are kept; more are made when more computations run at the same time.
	maxWorkspaces = 64
	// quickPictures is the number of held-out pictures for a quick evaluation.
	quickPictures = 2000
	// garbage is the garbage collector's percentage: most memory of a world is in use from its first steps on, and
	// twice as much would be too much for large worlds.
	garbage = 10
)

// PrepareAll is workload.Prepare for all peers.
func PrepareAll(ctx context.Context, s settings.Settings, peers int) (*Simulated, error) {
	if s.Normalize == settings.OfFlock {
		if err := workload.Normalize(ctx, table.Alone{}, &s); err != nil { // all read one folder
			return nil, err
		}
	}
	config, err := s.DataConfig(0)
	if err != nil {
		return nil, cli.Usage(err)
	}
	config.Part, config.Parts = 0, peers
	all, err := dataset.LoadAll(ctx, config)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		return nil, cli.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	return equip(s, all)
}

// With is the task with another model: of other settings, but for the data.
func (t *Simulated) With(s settings.Settings) (*Simulated, error) { return equip(s, t.all) }

// equip makes the model, and memory for its computations.
func equip(s settings.Settings, all []*dataset.Data) (_ *Simulated, err error) {
	s.Table.Stages.Model = 0 // all have the values of the whole model
	t := &Simulated{all: all, workspaces: make(chan *workspace, maxWorkspaces)}
	s.Batch = min(s.Batch, all[0].Len())
	if t.First, err = workload.Equip(s, all[0], s.Order(0)); err != nil {
		return nil, err
	}
	if err := t.First.Batches.Close(); err != nil { // each run has its own batches
		return nil, err
	}
	t.workspaces <- &workspace{model: t.First.Model}
	t.glance = all[0].HeldOut.Spread(quickPictures)
	return t, nil
}

// Begin gives every peer its data from the beginning, for one run. The caller must close the task.
func (t *Simulated) Begin(s settings.Settings) (_ *simulatedTask, err error) {
	task := &simulatedTask{Simulated: t, settings: s, factors: make([][]peertest.Factors, len(t.all))}
	for i, data := range t.all {
		batches, err := data.Batches(min(s.Drawn(), data.Len()), s.Order(i), s.Augmentation())
		if err != nil {
			return nil, cli.Usage(errors.Join(err, task.Close()))
		}
		task.batches = append(task.batches, batches)
		task.steps = append(task.steps, peer.Accumulate(s.Accumulate, func(x, grad tensor.Vector) (peer.Result, error) {
			return task.learn(i, x, grad, batches.Next)
		}))
	}
	return task, nil
}

// Train trains in a world; change may change what no setting can.
func (t *Simulated) Train(
	ctx context.Context, s Settings, world peertest.World, change func(*peertest.Simulation),
) (_ Result, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(garbage))
	task, err := t.Begin(s.Settings)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, task.Close()) }()
	simulation, err := s.Simulation(task, world)
	if err != nil {
		return Result{}, err
	}
	change(&simulation)
	outcome, err := peertest.Simulate(ctx, simulation)
	if err != nil {
		return Result{}, err
	}
	return newResult(s, outcome), nil
}

// Close ends the goroutines that supply the data.
func (t *simulatedTask) Close() error {
	var faults []error
	for _, b := range t.batches {
		faults = append(faults, b.Close())
	}
	return errors.Join(faults...)
}

// acquire takes a workspace, or makes one if all are in use.
func (t *Simulated) acquire(s settings.Settings) (*workspace, error) {
	select {
	case d := <-t.workspaces:
		return d, nil
	default:
	}
	model, err := nets.Sized(s.Model, t.First.Data.Shape(), t.First.Data.Classes(), s.Sizes)
	return &workspace{model: model}, err
}

// giveBack returns a workspace.
func (t *Simulated) giveBack(d *workspace) {
	select {
	case t.workspaces <- d:
	default: // enough are kept
	}
}

// simulatedTask is the task of the peers in one run, a peertest.Task.
type simulatedTask struct {
	*Simulated
	settings settings.Settings
	batches  []dataset.Batches
	steps    []func(x, grad tensor.Vector) (peer.Result, error) // the gradient of each peer's step
	row      dataset.Batch                                      // a micro-batch for stages
	labels   tensor.Vector
	factors  [][]peertest.Factors // of the last gradient of each peer
}

// Params implements peertest.Task.
func (t *simulatedTask) Params() *tensor.Params {
	params := tensor.NewParams(t.First.Params.Layout())
	copy(params.Vector(), t.First.Params.Vector())
	return params
}

// Gradient implements peertest.Task.
func (t *simulatedTask) Gradient(i, samples int, x, grad tensor.Vector) (peer.Result, error) {
	if !t.settings.Divides() {
		return t.steps[i](x, grad)
	}
	return t.learn(i, x, grad, func(b *dataset.Batch) error {
		return (&workload.Measured{Singly: t.batches[i]}).Fill(b, cmp.Or(samples, t.own(i)))
	})
}

// learn computes the gradient of the batch that next fills, for peer i.
func (t *simulatedTask) learn(i int, x, grad tensor.Vector, next func(*dataset.Batch) error) (peer.Result, error) {
	d, err := t.acquire(t.settings)
	if err != nil {
		return peer.Result{}, err
	}
	defer t.giveBack(d)
	if err := next(&d.batch); err != nil {
		return peer.Result{}, err
	}
	t.factors[i] = t.factors[i][:0]
	d.model.OnFactors(nil)
	if t.settings.Factors {
		d.model.OnFactors(func(at int, inputs, errors tensor.Vector) {
			t.factors[i] = append(t.factors[i], peertest.Factors{At: at, Inputs: slices.Clone(inputs), Errors: slices.Clone(errors)})
		})
	}
	return peer.Result{Loss: d.model.Gradient(x, &d.batch, grad), Samples: d.batch.Len()}, nil
}

// Factors implements peertest.Factored.
func (t *simulatedTask) Factors(i int) []peertest.Factors { return t.factors[i] }

// Rows implements peertest.Fed.
func (t *simulatedTask) Rows(i int) (x, y tensor.Vector, err error) {
	if err := t.batches[i].Next(&t.row); err != nil {
		return nil, nil, err
	}
	t.labels = nn.Labels(t.labels[:0], t.row.Labels)
	return t.row.X, t.labels, nil
}

// Readiness implements peertest.Gradual.
func (t *simulatedTask) Readiness() (all []peertest.Ready) {
	if t.settings.Accumulate > 1 { // a gradient is whole only with the last batch
		return nil
	}
	for _, r := range t.First.Model.Readiness() {
		all = append(all, peertest.Ready(r))
	}
	return all
}

// own is the batch of a peer that the algorithm gives none.
func (t *simulatedTask) own(i int) int {
	if t.settings.GlobalBatch == 0 {
		return t.settings.Batch
	}
	return baseline.Shares(t.settings.GlobalBatch, make([]float64, len(t.all)))[i]
}

// Evaluate implements peertest.Task.
func (t *simulatedTask) Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64) {
	d, err := t.acquire(t.settings)
	if err != nil {
		return 0, 0 // cannot happen: the first workspace could be made
	}
	defer t.giveBack(d)
	if glance {
		return d.model.Evaluate(x, t.glance)
	}
	return d.model.Evaluate(x, t.First.Data.HeldOut)
}
