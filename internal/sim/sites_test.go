package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// apart are so many sites of 8 peers: 1 Gbit/s inside, an uplink of 20 Mbit/s and 60 ms to the others. The peers tell
// where they are if told.
func apart(p plan, told bool) plan {
	p.config.Link = sim.Link{Delay: 50 * time.Microsecond}
	p.config.Port = 125e6
	p.config.Sites.Across = sim.Link{Delay: 60 * time.Millisecond, Bandwidth: 2.5e5}
	for i := range p.peers {
		p.config.Sites.Of = append(p.config.Sites.Of, i/8)
	}
	if told {
		p.place = func(peer int) topology.Place { return topology.Place{Site: fmt.Sprint("site ", peer/8)} }
	}
	return p
}

func auto(t *testing.T) func(int) averaging.Machine {
	return func(peer int) averaging.Machine {
		m, err := averaging.NewADPSGD(averaging.Config{Self: nameOf(peer), Rand: rand.New(rand.NewPCG(5, uint64(peer)))})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func TestSitesMix(t *testing.T) {
	for _, told := range []bool{false, true} {
		f := newFlock(t, apart(plan{
			seed: 5, peers: 16, values: 20_000, sliceLen: 1 << 11, unclipped: true, machine: auto(t),
			config: sim.Config{Task: direct{stepper: idle{}}},
		}, told))
		before := f.sum()
		last := f.spread()
		var c sim.Counts
		for second := range 5 {
			f.world.Run(time.Duration(second+1) * 10 * time.Second)
			c = f.total()
			across := int64(0)
			for i := range 16 {
				across += f.world.Counts(i).Across
			}
			spread := f.spread()
			t.Logf("told %v, %d s: spread %.3g, rate %.3f /s, %d exchanges, %d refused, %.1f MB, %.1f across", told, 10*(second+1), spread, 2*math.Log(last/spread)/10, c.Initiated, c.Refused, float64(c.Sent)/1e6, float64(across)/1e6)
			last = spread
		}
		f.comeToRest()
		t.Log(drift(before, f.sum()))
	}
}
