package main

import (
	"cmp"
	"errors"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// simulated is what the peers of simulated worlds learn: the workloads that as many
// processes would have, with what they have in common held once.
type simulated struct {
	all    []*dataset.Data
	first  *workload    // the first peer's, whose model and values all begin with
	glance *dataset.Set // some of the held-out pictures
	desks  chan *desk
}

// desk is room to compute in.
type desk struct {
	model nets.Model
	batch dataset.Batch
}

const (
	// maxDesks bounds those that are kept; more are made where more compute at once.
	maxDesks = 64
	// glanced is the number of held-out pictures that do for a glance.
	glanced = 2000
)

// prepareAll is prepare for all peers.
func (s settings) prepareAll(peers int) (*simulated, error) {
	config, err := s.dataConfig(0)
	if err != nil {
		return nil, cli.Usage(err)
	}
	config.Part, config.Parts = 0, peers
	all, err := dataset.LoadAll(config)
	if errors.Is(err, dataset.ErrConfig) || errors.Is(err, dataset.ErrShard) {
		return nil, cli.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	t := &simulated{all: all, desks: make(chan *desk, maxDesks)}
	if t.first, err = s.equip(all[0], s.order(0)); err != nil {
		return nil, err
	}
	if err := t.first.batches.Close(); err != nil { // each run has its own
		return nil, err
	}
	t.desks <- &desk{model: t.first.model}
	t.glance = someOf(all[0].HeldOut, glanced)
	return t, nil
}

// begin gives every peer its data from the beginning, for one run. The task is to be
// closed.
func (t *simulated) begin(s settings) (_ *simulatedTask, err error) {
	task := &simulatedTask{simulated: t, settings: s}
	for i, data := range t.all {
		batches, err := data.Batches(s.drawn(), s.order(i), s.augmentation())
		if err != nil {
			return nil, cli.Usage(errors.Join(err, task.Close()))
		}
		task.batches = append(task.batches, batches)
	}
	return task, nil
}

// someOf are so many pictures of a set, evenly spread.
func someOf(set *dataset.Set, most int) *dataset.Set {
	n := min(most, set.Len())
	indices := make([]int32, n)
	for i := range indices {
		indices[i] = int32(i * set.Len() / n)
	}
	return set.Subset(indices)
}

// Close ends what stands behind the data.
func (t *simulatedTask) Close() error {
	var faults []error
	for _, b := range t.batches {
		faults = append(faults, b.Close())
	}
	return errors.Join(faults...)
}

// sit takes a desk, a new one if all are taken.
func (t *simulated) sit(s settings) (*desk, error) {
	select {
	case d := <-t.desks:
		return d, nil
	default:
	}
	model, err := nets.ByName(s.Model, t.first.data.Shape(), t.first.data.Classes())
	return &desk{model: model}, err
}

// rise gives a desk back.
func (t *simulated) rise(d *desk) {
	select {
	case t.desks <- d:
	default: // there are enough
	}
}

// simulatedTask is what the peers of one run learn. It is a peertest.Task.
type simulatedTask struct {
	*simulated
	settings settings
	batches  []dataset.Batches
}

// Params implements peertest.Task.
func (t *simulatedTask) Params() *tensor.Params {
	params := tensor.NewParams(t.first.params.Layout())
	copy(params.Vector(), t.first.params.Vector())
	return params
}

// Gradient implements peertest.Task.
func (t *simulatedTask) Gradient(i, samples int, x, grad tensor.Vector) (peer.Result, error) {
	d, err := t.sit(t.settings)
	if err != nil {
		return peer.Result{}, err
	}
	defer t.rise(d)
	if t.settings.divides() {
		err = (&measured{singly: t.batches[i]}).fill(&d.batch, cmp.Or(samples, t.settings.Batch))
	} else {
		err = t.batches[i].Next(&d.batch)
	}
	if err != nil {
		return peer.Result{}, err
	}
	return peer.Result{Loss: d.model.Gradient(x, &d.batch, grad), Samples: d.batch.Len()}, nil
}

// Evaluate implements peertest.Task.
func (t *simulatedTask) Evaluate(x tensor.Vector, glance bool) (accuracy, loss float64) {
	d, err := t.sit(t.settings)
	if err != nil {
		return 0, 0 // the first one could be made
	}
	defer t.rise(d)
	if glance {
		return d.model.Evaluate(x, t.glance)
	}
	return d.model.Evaluate(x, t.first.data.HeldOut)
}
