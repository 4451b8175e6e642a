package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/topology"
)

// What only a real network once knew, virtual time knows by the same code.

// TestQuarantineStopsALiarInVirtualTime: who sends what no honest peer does is kept away by
// each that it lied to, for half a minute the first time and twice as long the next.
func TestQuarantineStopsALiarInVirtualTime(t *testing.T) {
	const peers = 8
	liar, passives := -1, 0
	for i, role := range roles(t, peers) {
		if role == topology.Passive {
			passives++
		} else if liar < 0 {
			liar = i
		}
	}
	short := func(payload []byte) []byte { return payload[:len(payload)-1] }
	f := newFlock(t, plan{
		seed: 5, peers: peers, values: 60, sliceLen: 20, every: 4,
		config: sim.Config{
			Task: direct{stepper: newStirrer(9, 60)}, Link: sim.Link{Delay: time.Millisecond},
			Hooks: sim.Hooks{Opened: func(s *sim.Stream) {
				if s.From() == liar {
					s.Tamper(liar, resealed(func(h wire.Header) bool { return h.Type == wire.TypeCode }, short))
				}
			}},
		},
	})
	caught := func() (n int) {
		for i := range peers {
			n += f.world.Counts(i).Quarantines
		}
		return n
	}
	f.world.Run(25 * time.Second)
	first, c := caught(), f.world.Counts(liar)
	if first == 0 || first > passives || c.Failed != first || c.Initiated > 0 {
		t.Errorf("after 25 s %d of %d have found the liar out, which counts %+v", first, passives, c)
	}
	f.world.Run(85 * time.Second) // the first term and the second, which is twice as long
	if again := caught(); again <= first || again > 2*passives {
		t.Errorf("after 85 s it was found out %d times, after the first term %d", again, first)
	}
	honest := 0
	for i := range peers {
		honest += f.world.Counts(i).Initiated
	}
	if honest < 1000 {
		t.Errorf("the others have exchanged %d times", honest)
	}
}

// TestACodecSubsetIsAgreedInVirtualTime: of the codecs offered those are accepted that the
// partner knows, and slices come with these alone.
func TestACodecSubsetIsAgreedInVirtualTime(t *testing.T) {
	const values, unknown = 4096, 63
	plan := plan{seed: 6, peers: 2, values: values, sliceLen: 256, every: 2}
	plan.config = sim.Config{Task: direct{stepper: newStirrer(9, values)}, Link: sim.Link{Delay: time.Millisecond}}
	seen := map[uint8]int{}
	plan.config.Hooks.Opened = func(s *sim.Stream) {
		s.Tamper(s.From(), resealed(func(h wire.Header) bool { return h.Type == wire.TypePropose || h.Type == wire.TypeCode }, func(payload []byte) []byte {
			var m wire.Propose
			if m.Decode(payload) != nil {
				if info, _, err := wire.SplitCode(payload); err == nil {
					seen[info.Codec]++
				}
				return payload
			}
			if len(m.Codecs) != 2 {
				t.Errorf("codecs %v are offered, not two", m.Codecs)
			}
			for i, id := range m.Codecs {
				if coding.ID(id) == coding.Lattice6to4 {
					m.Codecs[i] = unknown
				}
			}
			return m.Append(nil)
		}))
	}
	mixed := quant.Policy{Codec: "lattice6+4", Quantized: "50"}
	f := newFlock(t, plan)
	plan.config.Terms.Plan = mixed.Plan(f.replicas[0].JointLayers(), coding.Codec{})
	f = newFlock(t, plan)
	f.world.Run(2 * time.Second)
	done := f.world.Counts(0).Initiated + f.world.Counts(1).Initiated
	if done < 20 || len(seen) != 1 || seen[uint8(coding.Lattice6to4)] > 0 {
		t.Errorf("%d exchanges, with slices by codecs %v", done, seen)
	}
	if c := f.world.Counts(0); c.Failed > 0 || c.Quarantines > 0 {
		t.Errorf("counted %+v", c)
	}
}
