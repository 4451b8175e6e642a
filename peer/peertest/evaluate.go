package peertest

import (
	"math"
	"runtime"
	"sync"

	"github.com/seed-97356399/murmuration/tensor"
)

// point measures how the flock does at this moment, at a glance or thoroughly.
func (r *running) point(glance bool) Point {
	p := Point{Seconds: r.world.Now().Seconds(), Progress: r.trainer.progress(), Loss: r.trainer.meanLoss(), Consensus: r.consensus()}
	for i := range r.Peers {
		p.Bytes += r.world.Counts(i).Sent
	}
	most := r.Watch.Evaluate
	if glance {
		most = r.Watch.Glance
	}
	chosen := r.spread(most)
	accuracies, losses := r.evaluate(chosen, glance)
	p.Min, p.Max = math.NaN(), math.NaN()
	for i, a := range accuracies {
		p.Mean += a / float64(len(chosen))
		p.TestLoss += losses[i] / float64(len(chosen))
		if i == 0 || a < p.Min {
			p.Min = a
		}
		if i == 0 || a > p.Max {
			p.Max = a
		}
	}
	return p
}

// spread are so many of those who are there and tell the truth, evenly spread.
func (r *running) spread(most int) (chosen []int) {
	var honest []int
	for i, here := range r.here {
		if _, lies := r.lies[i]; here && !lies {
			honest = append(honest, i)
		}
	}
	n := min(most, len(honest))
	for k := range n {
		chosen = append(chosen, honest[k*len(honest)/n])
	}
	return chosen
}

// evaluate evaluates peers, several at once.
func (r *running) evaluate(chosen []int, glance bool) (accuracies, losses []float64) {
	accuracies, losses = make([]float64, len(chosen)), make([]float64, len(chosen))
	work := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(chosen)) {
		workers.Go(func() {
			x := make(tensor.Vector, r.layout.Len())
			for k := range work {
				r.replicas[chosen[k]].Snapshot(x)
				accuracies[k], losses[k] = r.Task.Evaluate(x, glance)
			}
		})
	}
	for k := range chosen {
		work <- k
	}
	close(work)
	workers.Wait()
	return accuracies, losses
}

// consensus is the root mean square distance from their mean of those who are there and
// tell the truth.
func (r *running) consensus() float64 {
	all := r.spread(r.Peers)
	if len(all) == 0 {
		return 0
	}
	n := r.layout.Len()
	x, mean, squared := make(tensor.Vector, n), make([]float64, n), 0.0
	for _, i := range all {
		r.replicas[i].Snapshot(x)
		for j, v := range x {
			mean[j] += float64(v) / float64(len(all))
		}
	}
	for _, i := range all {
		r.replicas[i].Snapshot(x)
		for j, v := range x {
			squared += (float64(v) - mean[j]) * (float64(v) - mean[j])
		}
	}
	return math.Sqrt(squared / float64(len(all)))
}
