package peertest_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestSimulatedRivalsEndWithOneModel: peers crash, leave and come back without the momentum
// that the others have, and all who are there in the end have the same model.
func TestSimulatedRivalsEndWithOneModel(t *testing.T) {
	t.Parallel()
	machines := map[string]func(baseline.Config) (averaging.Machine, error){
		"allreduce": func(c baseline.Config) (averaging.Machine, error) { return baseline.NewAllReduce(c) },
		"ps-bsp":    func(c baseline.Config) (averaging.Machine, error) { return baseline.NewParamServer(c, baseline.BSP{}) },
		"ps-asp":    func(c baseline.Config) (averaging.Machine, error) { return baseline.NewParamServer(c, baseline.ASP{}) },
	}
	for name, machine := range machines {
		t.Run(name, func(t *testing.T) {
			s := simulation(8)
			s.Work.StepsPerPeer = 500
			s.Exchange.Machine = func(c averaging.Config) (averaging.Machine, error) { return machine(baseline.Config{Self: c.Self}) }
			at := func(n int) time.Duration { return time.Duration(n) * time.Second }
			s.World.Changes = []peertest.Change{
				{At: at(1), Kind: peertest.Leave, Peer: 3}, {At: at(4), Kind: peertest.Arrive, Peer: 3},
				{At: at(2), Kind: peertest.Crash, Peer: 5}, {At: at(10), Kind: peertest.Arrive, Peer: 5},
				{At: at(11), Kind: peertest.Leave, Peer: 0}, {At: at(13), Kind: peertest.Arrive, Peer: 0},
			}
			o := simulate(t, s)
			t.Logf("%.1f s, accuracy %.3f to %.3f, models %g apart", o.Seconds, o.Final.Min, o.Final.Max, o.Final.Consensus)
			if o.Seconds < 14 || o.Traffic.Lost != 3 {
				t.Errorf("the run took %.1f s, and %d were lost: not all has happened", o.Seconds, o.Traffic.Lost)
			}
			for i, e := range o.Each {
				if !e.Here {
					t.Errorf("peer %d is not there", i)
				}
			}
			if o.Final.Min != o.Final.Max || o.Final.Consensus > 1e-12 {
				t.Errorf("models are %g apart, and are worth %g to %g", o.Final.Consensus, o.Final.Min, o.Final.Max)
			}
		})
	}
}
