package dashboard

import (
	"math"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// maxPoints bounds a curve: when it is full, every second point is removed, and new points become half as frequent.
const maxPoints = 600

// point is the state of the run at a moment, for curves.
type point struct {
	Seconds  float64    `json:"t"`
	Steps    uint64     `json:"steps"`
	Loss     cli.Number `json:"loss"`
	LossLow  cli.Number `json:"lossLow"`
	LossHigh cli.Number `json:"lossHigh"`
	Distance cli.Number `json:"distance"`
	Accuracy cli.Number `json:"accuracy"`
}

// pointOf takes the values for curves from a view.
func pointOf(v *view, at time.Duration) point {
	p := point{
		Seconds: at.Seconds(), Steps: v.FlockSteps, Loss: v.Loss, Distance: v.Distance, Accuracy: v.Accuracy,
		LossLow: cli.Number(math.Inf(1)), LossHigh: cli.Number(math.Inf(-1)), // become null if no member reports a loss
	}
	for _, d := range v.fresh {
		if !math.IsNaN(d.Loss) {
			p.LossLow, p.LossHigh = min(p.LossLow, cli.Number(d.Loss)), max(p.LossHigh, cli.Number(d.Loss))
		}
	}
	return p
}

// history keeps points of a run of any length in bounded memory. The zero value is empty.
type history struct {
	kept  []point
	every int // one of so many points is kept
	seen  int
}

func (h *history) add(p point) {
	if last := len(h.kept) - 1; last >= 0 && h.kept[last].Steps == p.Steps {
		h.kept[last] = p // no step since: replace the point
		return
	}
	h.every = max(h.every, 1)
	h.seen++
	if (h.seen-1)%h.every != 0 {
		return
	}
	if len(h.kept) == maxPoints {
		for i := range maxPoints / 2 {
			h.kept[i] = h.kept[2*i]
		}
		h.kept = h.kept[:maxPoints/2]
		h.every *= 2
		if (h.seen-1)%h.every != 0 {
			return
		}
	}
	h.kept = append(h.kept, p)
}

// points returns a copy of the kept points.
func (h *history) points() []point { return append([]point{}, h.kept...) }

// outlookOf estimates the remaining time of a run from its recent pace.
type outlookOf struct {
	seen []look // the latest
	last cli.Number
}

// look is the progress of the run at a moment, in seconds.
type look struct{ at, progress float64 }

// outlookSpan is the number of looks over which the pace is measured.
const outlookSpan = 30

// next takes the progress at a moment and returns the estimate, in seconds. A pause starts the estimate anew.
func (o *outlookOf) next(at time.Duration, progress float64, paused bool) cli.Number {
	o.last = cli.Number(math.NaN())
	if paused || progress <= 0 || progress >= 1 {
		o.seen = nil
		return o.last
	}
	o.seen = append(o.seen[max(0, len(o.seen)+1-outlookSpan):], look{at.Seconds(), progress})
	first := o.seen[0]
	if gained := progress - first.progress; gained > 0 {
		o.last = cli.Number((1 - progress) * (at.Seconds() - first.at) / gained)
	}
	return o.last
}
