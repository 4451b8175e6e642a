package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/sim"
)

// crowd is a flock of so many peers with models as large as those of a linear
// classifier of digits, each making so many steps with an exchange for every two.
func crowd(t testing.TB, peers, steps int, codec string) (f *flock, events int) {
	t.Helper()
	f = newFlock(t, plan{
		seed: 1, peers: peers, values: 7850, sliceLen: 32 << 10, codec: codec,
		config: sim.Config{Task: direct{stepper: idle{}}, Link: sim.Link{Delay: time.Millisecond, Bandwidth: 1e8}},
	})
	for f.total().Steps < steps*peers {
		events += f.world.Run(f.world.Now() + 20*time.Millisecond)
	}
	return f, events
}

// BenchmarkCrowd reports what an event costs in small and large flocks, and the memory
// that a peer takes.
func BenchmarkCrowd(b *testing.B) {
	for _, codec := range []string{"raw", "lattice8+4"} {
		for _, peers := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", codec, peers), func(b *testing.B) {
				for b.Loop() {
					began := time.Now()
					f, events := crowd(b, peers, 100, codec)
					b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(events), "ns/event")
					b.ReportMetric(float64(events)/float64(f.total().Initiated), "events/exchange")
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					b.ReportMetric(float64(m.HeapAlloc)/float64(peers)/1e3, "kB/peer")
					b.ReportMetric(float64(m.Sys)/1e6, "MB")
					runtime.KeepAlive(f)
				}
			})
		}
	}
}
