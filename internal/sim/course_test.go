package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
)

// onward is a bowl whose run goes on as steps are made.
type onward struct {
	*bowl
	due int // steps of each peer
}

func (o onward) Progress(peer int) float64 { return min(float64(len(o.seen[peer]))/float64(o.due), 1) }

// TestACourseOfProportions: of a model of one slice, a course of 0 to 100 percent over a run
// quantizes few of the early exchanges and most of the late ones, half of them in all; a
// proportion of 30 percent, 30 of every hundred.
func TestACourseOfProportions(t *testing.T) {
	t.Parallel()
	const values, due = 4000, 1500
	int8, err := coding.ByName("int8")
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := coding.ByID(coding.Raw)
	// bytes are those of each exchange of a run, in its two halves.
	bytes := func(layer coding.LayerPlan) (early, late float64) {
		layer.Codec, layer.Exact = int8, raw
		o := onward{newBowl(2), due}
		f := newFlock(t, plan{seed: 5, peers: 2, values: values, sliceLen: values, initial: alike, config: sim.Config{
			Task: o, Link: sim.Link{Delay: 10 * time.Microsecond, Bandwidth: 1e9}, Terms: replica.Terms{Plan: coding.Plan{layer}},
		}})
		half := func() float64 {
			before := f.total()
			for o.Progress(0) < 0.5 || before.Steps > 0 && o.Progress(0) < 1 { // of who initiates all of them
				f.world.Run(f.world.Now() + 10*time.Millisecond)
			}
			return float64(f.total().Moved-before.Moved) / float64(f.total().Initiated-before.Initiated)
		}
		return half(), half()
	}
	none, _ := bytes(coding.LayerPlan{})
	all, _ := bytes(coding.LayerPlan{Proportion: 100})
	share := func(b float64) float64 { return (none - b) / (none - all) }
	early, late := bytes(coding.LayerPlan{Course: coding.Course{{}, {Percent: 100, Progress: 1}}})
	some, more := bytes(coding.LayerPlan{Proportion: 30})
	t.Logf("coded of one slice: %.3f and %.3f of a course, %.3f and %.3f of 30 %%", share(early), share(late), share(some), share(more))
	for _, c := range [][2]float64{{share(early), 0.25}, {share(late), 0.75}, {share(some), 0.3}, {share(more), 0.3}} {
		if !(math.Abs(c[0]-c[1]) <= 0.05) { // NaN too
			t.Errorf("%.3f of the exchanges are coded, want %.2f", c[0], c[1])
		}
	}
}
