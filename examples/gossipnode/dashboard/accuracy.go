package dashboard

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/nets"
	"github.com/seed-97356399/murmuration/tensor"
)

const (
	// watchedPictures is how many held-out pictures measure the accuracy during the run: enough for an error of about
	// three points.
	watchedPictures = 300
	// accuracyEvery is the least time between two measurements. It is also at least evaluationShare times the
	// duration of a measurement.
	accuracyEvery   = 2 * time.Second
	evaluationShare = 30
)

// Accuracy measures the accuracy of a peer's model from time to time, so rarely that training is not slowed by more
// than evaluationShare allows.
type Accuracy struct {
	model    nets.Model
	pictures *dataset.Set
	params   tensor.Vector
	snapshot func(dst tensor.Vector, since uint64) (version uint64, err error)
	measured atomic.Uint64 // the bits of the last accuracy

	enough  chan struct{} // ends the measurements
	resting sync.Once
	running sync.WaitGroup
}

// NewAccuracy makes an Accuracy with its own model, since a model serves one goroutine at a time.
func NewAccuracy(name string, sizes nets.Sizes, data *dataset.Data, snapshot func(dst tensor.Vector, since uint64) (version uint64, err error)) (*Accuracy, error) {
	model, err := nets.Sized(name, data.Shape(), data.Classes(), sizes)
	if err != nil {
		return nil, err
	}
	w := &Accuracy{enough: make(chan struct{}), model: model, snapshot: snapshot, params: tensor.NewParams(model.Layout()).Vector()}
	w.pictures = data.HeldOut.Spread(watchedPictures)
	w.measured.Store(math.Float64bits(math.NaN()))
	return w, nil
}

// rest ends the measurements, and waits until the model is not read any more. A nil Accuracy measures nothing.
func (w *Accuracy) rest() {
	if w == nil {
		return
	}
	w.resting.Do(func() { close(w.enough) })
	w.running.Wait()
}

// run measures until rest.
func (w *Accuracy) run() {
	version := uint64(0)
	timer := time.NewTimer(accuracyEvery)
	defer timer.Stop()
	for {
		select {
		case <-w.enough:
			return
		case <-timer.C:
		}
		began := time.Now()
		if now, err := w.snapshot(w.params, version); err == nil && now != version {
			right, _ := w.model.Evaluate(w.params, w.pictures)
			w.measured.Store(math.Float64bits(right))
			version = now
		}
		timer.Reset(max(accuracyEvery, evaluationShare*time.Since(began)))
	}
}

// last is the last measured accuracy; NaN before the first.
func (w *Accuracy) last() cli.Number { return cli.Number(math.Float64frombits(w.measured.Load())) }
