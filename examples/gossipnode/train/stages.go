package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/pipeline"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// staged is what a peer has that trains one stage of the model; its zero value is of one that trains the whole.
type staged struct {
	*pipeline.Pipeline
	plan   pipeline.Plan
	stage  int
	labels tensor.Vector
	memory uint64 // at its peak while it trained, before it had the whole model
}

// between tells whether this peer has no data, where the ends of the model stay with those that do.
func (s *staged) between() bool { return s.plan.Parts() < len(s.plan.Stages) && s.stage > 0 }

// between is the workload of such a peer.
func between(p *preparing) (*workload.Workload, error) {
	data, err := dataset.Without(p.Dataset)
	if err != nil {
		return nil, err
	}
	return workload.Equip(*p.Settings, data, p.Seed)
}

// evaluated is how good the model is; unknown to a peer that has a part of it, and no data.
func evaluated(t *training) (right, loss float64) {
	if t.staged.between() {
		return math.NaN(), math.NaN()
	}
	return t.work.Model.Evaluate(t.work.Params.Vector(), t.recent.judges(t.work.Data.HeldOut))
}

// What a micro-batch takes, about: the products that a core makes in a second, and the bytes of a link between stages. They
// are the same at all peers, so that all cut the model alike.
const (
	products  = 5e9
	linkBytes = 1e9 / 8
)

// cut cuts a model into stages that take about as long.
func cut(model *nn.Model, stages, examples int) (pipeline.Plan, error) {
	var costs []nn.Cost
	for _, p := range model.Parts() {
		costs = append(costs, nn.Cost{Seconds: 3 * p.Work * float64(examples) / products, Across: 2 * tensor.ValueSize * float64(p.Out.Len()*examples)})
	}
	cuts, err := nn.Split(costs, stages, linkBytes, 0)
	if err != nil {
		return pipeline.Plan{}, err
	}
	return pipeline.Cut(model, nn.CrossEntropy(), cuts...)
}

// beginStage joins the run, takes the stage that needs this peer most, and begins to train it.
func beginStage(ctx context.Context, t *training, p *preparing) (*member, error) {
	data := t.work.Data
	if t.TrainOnly {
		data = nil // it has none, and cannot describe it
	}
	if err := joinWith(ctx, p, data); err != nil {
		return nil, err
	}
	t.announced = p.announced
	examples, batches := t.MicroBatch()
	s := &t.staged
	var err error
	if s.plan, err = cut(nets.Layers(t.work.Model), t.ModelStages(), examples); err == nil && t.EndsStay {
		s.plan, err = s.plan.EndsStay()
	}
	if err != nil {
		return nil, err
	}
	if s.stage, t.work.Params, err = takeStage(ctx, t, p); err != nil {
		return nil, err
	}
	with, err := t.trains()
	if err != nil {
		return nil, err
	}
	with.Stage = s.plan.Stage(s.stage)
	trainer, err := p.node.Train(ctx, with)
	if err != nil {
		return nil, err
	}
	of := pipeline.Config{Plan: s.plan, Stage: s.stage, Examples: examples, Batch: batches, Rounds: t.Strategy == settings.StrategyAllReduce, Codec: t.ActivationCodec(), Log: t.Log}
	if !t.staged.between() {
		of.Feed = func(ctx context.Context) (x, y tensor.Vector, err error) { return feed(ctx, t) }
	}
	s.Pipeline, err = pipeline.New(p.node, trainer, of)
	return memberOf(p.node, trainer), err
}

// takeStage takes the stage of the newest checkpoint, or that which needs this peer most, and its parameters.
func takeStage(ctx context.Context, t *training, p *preparing) (stage int, params *tensor.Params, err error) {
	whole := t.work.Params.Vector()
	if names, err := t.Checkpoints().Names(); err == nil && len(names) > 0 && t.Checkpoint != "" {
		return stageOfCheckpoint(t, whole)
	}
	var place pipeline.Place
	if !t.EndsStay || t.TrainOnly { // else it has the ends
		if place, err = pipeline.Choose(ctx, p.node, t.staged.plan); err != nil {
			return 0, nil, err
		}
	}
	if place.Fault != nil {
		t.Log.Warn("a stage without peers begins anew, though a peer keeps a copy of it", zap.Error(place.Fault))
	}
	if place.Params != nil {
		t.say(fmt.Sprintf("stage %d had nobody left: going on from the copy that another peer kept, of step %d of all peers", place.Stage+1, place.At))
		return place.Stage, place.Params, nil
	}
	if t.Init == "" {
		return place.Stage, t.staged.plan.Init(place.Stage, t.Seed), nil
	}
	params, err = t.staged.plan.Part(place.Stage, whole)
	return place.Stage, params, err
}

// stageOfCheckpoint finds the stage that the newest checkpoint is of, and takes it. The folder may have checkpoints of stages that
// this peer had before.
func stageOfCheckpoint(t *training, whole tensor.Vector) (stage int, params *tensor.Params, err error) {
	folder, faults := workload.Folder(t.Settings), []error(nil)
	folder.Older = nil // another stage may have the same shapes under other names
	for i := range t.staged.plan.Parts() {
		part, err := t.staged.plan.Part(i, whole)
		if err != nil {
			return 0, nil, err
		}
		taken, refused, err := folder.Load(part)
		switch {
		case err != nil:
			faults = append(faults, err)
		case taken == nil || taken.Older || params != nil && newer(t.work.Resumed.Path, taken.Path):
		default:
			stage, params, t.work.Resumed, t.work.Refused = i, part, taken, refused
		}
	}
	if params == nil {
		return 0, nil, settings.Remedied(cmp.Or(errors.Join(faults...), checkpoint.ErrUnusable))
	}
	return stage, params, nil
}

// newer tells whether a checkpoint's file was written after another of its folder: the names have numbers of one length, or longer ones.
func newer(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0 }

// feed gives the next micro-batch of this peer's data, and none once it has trained enough.
func feed(ctx context.Context, t *training) (x, y tensor.Vector, err error) {
	if err = t.work.Batches.Next(&t.batch); errors.Is(err, dataset.ErrClosed) {
		<-ctx.Done()
	}
	if err != nil {
		return nil, nil, err
	}
	t.staged.labels = nn.Labels(t.staged.labels[:0], t.batch.Labels)
	return t.batch.X, t.staged.labels, nil
}

// stepOfStage makes a step, which takes the least time that is asked for.
func stepOfStage(ctx context.Context, t *training) error {
	began := time.Now()
	if err := t.staged.Step(ctx); err != nil {
		return err
	}
	t.record.Computed(began, time.Now())
	select {
	case <-time.After(t.LeastStep - time.Since(began)):
	case <-ctx.Done():
	}
	return nil
}

// does is what this peer trains, in words.
func does(t *training) string {
	if t.staged.Pipeline == nil {
		return fmt.Sprintf("training %s on %s", t.Model, t.Dataset)
	}
	if t.EndsStay && t.staged.stage == 0 {
		return fmt.Sprintf("training the first and the last of %d stages of %s on %s, which stay here", len(t.staged.plan.Stages), t.Model, t.Dataset)
	}
	return fmt.Sprintf("training stage %d of %d of %s on %s", t.staged.stage+1, len(t.staged.plan.Stages), t.Model, t.Dataset)
}

// collectFor bounds the wait at the end for those that still need this peer's stage to train, and then that for the other stages.
// For members that have not collected them yet all wait three times as long, which is more than both.
const collectFor = time.Minute

// collect makes the whole model of the stages of all peers, once the run is over for this one, or has ended with an error.
// Nobody leaves before the others have it too.
func collect(ctx context.Context, t *training, ended error) (*tensor.Params, error) {
	if t.staged.Pipeline == nil || ended != nil {
		return t.work.Params, nil
	}
	t.staged.memory, _ = host.PeakMemory() // 0 if it is unknown
	within := func(d time.Duration, do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return do(ctx)
	}
	if err := within(collectFor, t.staged.Linger); err != nil {
		t.Log.Warn("some peers may lack this one's stage for their last steps", zap.Error(err))
	}
	_ = t.peer.trainer().Close() // it never fails
	whole := t.work.Params       // the part of who has no right to the ends
	if !t.staged.between() {
		err := within(collectFor, func(ctx context.Context) (err error) { whole, err = t.staged.Whole(ctx); return err })
		if err != nil {
			return nil, fmt.Errorf("%w: the other stages cannot be had; the checkpoints of peers have theirs", err)
		}
	}
	err := within(3*collectFor, func(ctx context.Context) error { _, err := t.peer.Gather(ctx, "stages/collected", nil); return err })
	if err != nil {
		t.Log.Warn("not all peers tell that they have the whole model", zap.Error(err))
	}
	return whole, nil
}
