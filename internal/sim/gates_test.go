package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/topology"
)

// served makes parameter servers behind a gate.
func served(gate func() (baseline.Gate, error)) machines {
	return func(self topology.PeerID, _ int) (averaging.Machine, error) {
		g, err := gate()
		if err != nil {
			return nil, err
		}
		return baseline.NewParamServer(baseline.Config{Self: self}, g)
	}
}

// lead is how many steps the fastest peer is ahead of the slowest.
func (f *flock) lead() int {
	least, most := f.world.Counts(0).Steps, 0
	for i := range f.replicas {
		steps := f.world.Counts(i).Steps
		least, most = min(least, steps), max(most, steps)
	}
	return most - least
}

// TestGates races the parameter servers with one slow worker, and sees that nobody gets
// farther ahead than the gate lets. A worker's step counts when the parameters come, which
// is one later than its push.
func TestGates(t *testing.T) {
	t.Parallel()
	const upper = 8
	gates := []struct {
		name string
		gate func() (baseline.Gate, error)
		lead int // at most, 0 for any
	}{
		{"ps-bsp", func() (baseline.Gate, error) { return baseline.BSP{}, nil }, 1},
		{"ps-asp", func() (baseline.Gate, error) { return baseline.ASP{}, nil }, 0},
		{"ps-ssp, 3", func() (baseline.Gate, error) { return baseline.NewSSP(3) }, 3 + 1},
		{"ps-dssp, 3 to 8", func() (baseline.Gate, error) { return baseline.NewDSSP(3, upper) }, upper + 1},
	}
	t.Log("| | steps a second of 8 peers, alike | one slower by 2 | by 10 | largest lead |")
	for _, g := range gates {
		var rates [3]float64
		lead := 0
		for i, factor := range []float64{1, 2, 10} {
			r := race{
				peers: 8, batch: 32, speeds: []float64{3200, 3200, 3200, 3200 / factor, 3200},
				link: sim.Link{Delay: 50 * time.Microsecond, Bandwidth: 1e8},
			}
			f := r.flock(t, served(g.gate))
			for f.world.Now() < 4*time.Second {
				f.world.Run(f.world.Now() + 5*time.Millisecond)
				if lead = max(lead, f.lead()); g.lead > 0 && f.lead() > g.lead {
					t.Fatalf("%s: a lead of %d steps, at most %d", g.name, f.lead(), g.lead)
				}
			}
			rates[i] = float64(f.total().Steps) / f.world.Now().Seconds()
			if all := f.total(); all.Failed > 0 {
				t.Errorf("%s: %+v", g.name, all)
			}
		}
		t.Logf("| %s | %.0f | %.0f | %.0f | %d |", g.name, rates[0], rates[1], rates[2], lead)
		switch {
		case g.name == "ps-bsp" && rates[2] > 0.15*rates[0]:
			t.Errorf("BSP does not wait for the slow one: %v", rates)
		case g.name == "ps-asp" && rates[2] < 0.8*rates[0]:
			t.Errorf("ASP waits for the slow one: %v", rates)
		}
	}
}
