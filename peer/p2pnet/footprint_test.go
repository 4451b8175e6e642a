package p2pnet

import (
	"runtime"
	"testing"
)

// TestConnectionFootprint: a connection takes eight goroutines, both its ends together,
// and no buffer of its own worth the name, however many a process has: eight
// transports and then sixteen, each joined with every other.
func TestConnectionFootprint(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	// It is 65 to 77 KiB: what would go beyond is one more buffer for each, not noise.
	const most, goroutines = 256 << 10, 8
	measure := func() (bytes, routines int) {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
	}
	for _, n := range []int{8, 16} {
		all := make([]*Transport, n)
		identified := make([]<-chan any, n)
		for i := range all {
			all[i] = start(t, loopback())
			identified[i] = identifications(t, all[i], n)
		}
		bytes, routines := measure()
		for i, from := range all {
			for _, to := range all[:i] {
				if _, err := from.Connect(t.Context(), to.JoinAddresses()[0]); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, events := range identified {
			for range n - 1 {
				receive(t, "libp2p's identify comes to an end", events)
			}
		}
		connections := n * (n - 1) / 2
		var each int
		var routine float64
		t.Cleanup(func() {
			t.Logf("%d transports, %d connections: %d KiB and %.1f goroutines each", n, connections, each>>10, routine)
		})
		eventually(t, "a connection takes no more", func() bool { // than a leak would, which stays
			after, now := measure()
			each, routine = (after-bytes)/connections, float64(now-routines)/float64(connections)
			return each <= most && routine <= goroutines+0.5
		})
	}
}
