package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// BenchmarkFlock reports what a simulated exchange costs, a step of each peer for
// every two of them included.
func BenchmarkFlock(b *testing.B) {
	b.ReportAllocs()
	f := newFlock(b, plan{
		seed: 1, peers: 8, values: 100_000, sliceLen: 32 << 10,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e8}},
	})
	f.world.Run(time.Second)
	before, events := f.total().Initiated, 0
	b.ResetTimer()
	for f.total().Initiated-before < b.N {
		events += f.world.Run(f.world.Now() + 10*time.Millisecond)
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}
