package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// partially is AD-PSGD whose exchanges take what the link carries in so many steps.
func partially(t *testing.T, every int) func(int) averaging.Machine {
	return func(peer int) averaging.Machine {
		m, err := averaging.NewADPSGD(averaging.Config{
			Self: nameOf(peer), Pace: averaging.Pace{Every: every, Partial: true}, Rand: rand.New(rand.NewPCG(5, uint64(peer))),
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// TestPartialExchangesFollowTheLink: peers exchange as often over a slow link as over a fast one,
// and send what it carries in the time between two exchanges, to within a fifth; nothing breaks off,
// no slice is left out for ever, and the sum stays as it is.
func TestPartialExchangesFollowTheLink(t *testing.T) {
	const every, values, slice = 8, 1 << 15, 1 << 8
	run := 20 * time.Second
	var full int
	for _, rate := range []float64{0, 1600e3, 800e3, 400e3, 250e3} { // bytes a second; H steps are 64 to 72 ms
		f := newFlock(t, plan{
			seed: 5, peers: 2, values: values, sliceLen: slice, every: every, unclipped: true, machine: partially(t, every),
			config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: rate}, Terms: replica.Terms{Window: 8}},
		})
		before := f.sum()
		f.world.Run(run)
		f.comeToRest()
		c := f.total()
		if full = max(full, c.Initiated); c.Failed > 0 || c.Initiated < full*9/10 {
			t.Errorf("at %.0f bytes a second %d exchanges were completed of %d, %d failed", rate, c.Initiated, full, c.Failed)
		}
		used := float64(c.Sent) / 2 / run.Seconds() // a way: codes go there, differences back
		if rate > 0 && math.Abs(used/rate-1) > 0.2 {
			t.Errorf("at %.0f bytes a second %.0f were sent", rate, used)
		}
		if moved := drift(before, f.sum()); moved > 1e-6 || f.spread() > 1e-3 {
			t.Errorf("at %.0f bytes a second the sum moved by %g of itself; the models are %g apart", rate, moved, f.spread())
		}
	}
}

// TestPartialExchangesSuitEachLink: what a peer exchanges over each of its links is as its rate, to within a fifth, while it goes from
// one to the other: those that carry little hold up nothing.
func TestPartialExchangesSuitEachLink(t *testing.T) {
	const every, values, slice = 8, 1 << 15, 1 << 8
	f := newFlock(t, plan{
		seed: 5, peers: 3, values: values, sliceLen: slice, every: every, unclipped: true, machine: partially(t, every),
		config: sim.Config{Task: direct{stepper: idle{}}, Terms: replica.Terms{Window: 8}},
	})
	role := roles(t, 3)
	var ends []int // of the two links: those of the class with two members
	for i := range role {
		if role[i] == role[(i+1)%3] || role[i] == role[(i+2)%3] {
			ends = append(ends, i)
		}
	}
	middle := 3 - ends[0] - ends[1]
	rates := []float64{1200e3, 300e3}
	for i, end := range ends {
		if err := f.world.SetLink(middle, end, sim.Link{Delay: time.Millisecond, Bandwidth: rates[i]}); err != nil {
			t.Fatal(err)
		}
	}
	f.world.Run(20 * time.Second)
	var sent, exchanges [2]float64
	for i, end := range ends {
		c := f.world.Counts(end)
		sent[i], exchanges[i] = float64(c.Sent), float64(c.Initiated+c.Served)
	}
	t.Logf("%v exchanges, %v bytes", exchanges, sent)
	if ratio := sent[0] / sent[1] * rates[1] / rates[0]; math.Abs(ratio-1) > 0.2 || math.Abs(exchanges[0]/exchanges[1]-1) > 0.1 {
		t.Errorf("over links of %v bytes a second %v were sent, in %v exchanges", rates, sent, exchanges)
	}
	if c := f.total(); c.Failed > 0 {
		t.Errorf("%d exchanges failed", c.Failed)
	}
}

// TestPartialExchangesLearn logs what partial exchanges are worth to a peer whose port takes a tenth
// of a model in the time between two exchanges, and to the others.
func TestPartialExchangesLearn(t *testing.T) {
	if !*tables {
		t.Skip("give -tables to compare partial exchanges with whole ones")
	}
	e, d := extentOf(t, 6), loadDigits(t)
	const every = 4
	model := float64(tensor.ValueSize * d.model.Layout().Len())
	tenth := model / 10 / (every * pupilStep).Seconds()
	t.Log(columns)
	accuracy := map[string]float64{}
	for _, l := range []struct {
		name    string
		port    float64
		partial bool
	}{{"no slow port", 0, false}, {"one slow port, whole exchanges", tenth, false}, {"one slow port, partial exchanges", tenth, true}} {
		r := d.lessons(t, l.name, e, lesson{
			pace: averaging.Pace{Every: every, Partial: l.partial}, policy: quant.Policy{Codec: "raw"}, sliceLen: 2048, port: l.port,
		})
		accuracy[l.name] = r.accuracy()
		t.Logf("%s: the slow peer itself %.2f %%", l.name, r.mean(func(o outcome) float64 { return o.slow }))
	}
	if lost := accuracy["no slow port"] - accuracy["one slow port, partial exchanges"]; lost > 0.3 {
		t.Errorf("%.2f points are lost", lost)
	}
}
