package train

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/control"
	holding "github.com/seed-97356399/murmuration/peer/rows"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// duties are what the operator wants this process to do: whether it trains, and by which weights it gives the rows that it holds. Any
// goroutine may use them.
type duties struct {
	log   *zap.Logger
	fixed string // why it cannot train or rest otherwise than it was started, empty if it can

	mu      sync.Mutex
	rests   bool
	end     context.CancelFunc // of the context in which it trains
	again   chan struct{}      // closed when it rests no more
	weights map[transport.PeerID]float64
	holder  *holding.Holder // nil while this process holds nothing
}

func newDuties(s settings.Settings, log *zap.Logger) *duties {
	d := &duties{log: log, rests: s.Hold, end: func() {}, weights: make(map[transport.PeerID]float64)}
	switch {
	case s.Hold:
		d.fixed = "--hold: it has no model to train"
	case s.Follow != "" || s.TaskFile != "":
		d.fixed = "--follow or --tasks: they say when it trains"
	case s.ModelStages() > 1:
		d.fixed = "--stages: others need its part of the model"
	case s.ServeOnly:
		d.fixed = "--serve-only: it does not train"
	}
	return d
}

// hear takes the operator's word.
func (d *duties) hear(changes []control.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range changes {
		switch rests := n.Do == control.Rest; {
		case n.Do == control.Weigh:
			d.weigh(n.Peer, n.Weight)
		case n.Do != control.Train && !rests || rests == d.rests:
		case d.fixed != "":
			d.log.Warn("the operator changes whether this peer trains, which it cannot, as it was started with " + d.fixed)
		case rests:
			d.rests, d.again = true, make(chan struct{})
			d.end()
		default:
			d.rests = false
			close(d.again)
		}
	}
}

// weigh has the holder give a member rows by a weight, or will once there is one. The lock is held.
func (d *duties) weigh(member transport.PeerID, weight float64) {
	if d.holder == nil {
		if d.weights[member] = weight; len(d.weights) > settings.MaxPeers {
			clear(d.weights) // a process that holds nothing needs none
		}
		return
	}
	if err := d.holder.Weigh(member, weight); err != nil {
		d.log.Warn("the operator's weight of a member does not count here", zap.Error(err))
		return
	}
	d.log.Info("rows are given by another weight, as the operator says", zap.String("peer", string(member)), zap.Float64("weight", weight))
}

// holds has a holder give rows by the weights that were said so far, and that are said later.
func (d *duties) holds(h *holding.Holder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holder = h
	for member, weight := range d.weights {
		d.weigh(member, weight)
	}
}

// working is a context that ends with another, or when this process is to train no more.
func (d *duties) working(ctx context.Context) context.Context {
	within, end := context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end = end; d.rests {
		end()
	}
	return within
}

// trains is closed once this process is to train again.
func (d *duties) trains() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.again
}
