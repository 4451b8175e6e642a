package p2pnet

import (
	"runtime"
	"testing"
	"time"
)

// TestConnectionFootprint: a connection takes at most 80 KiB of heap and stacks, both
// its ends together, and eight goroutines, however many a process has: eight
// transports and then sixteen, each joined with every other.
func TestConnectionFootprint(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const most, goroutines = 80 << 10, 8
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
		for i := range all {
			all[i] = start(t, loopback())
		}
		bytes, routines := measure()
		for i, from := range all {
			for _, to := range all[:i] {
				if _, err := from.Connect(t.Context(), to.JoinAddresses()[0]); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second) // against the real clock: libp2p's identify comes to an end
		after, now := measure()
		connections := n * (n - 1) / 2
		each, routine := (after-bytes)/connections, float64(now-routines)/float64(connections)
		t.Logf("%d transports, %d connections: %d KiB and %.1f goroutines each", n, connections, each>>10, routine)
		if each > most || routine > goroutines+0.5 {
			t.Errorf("%d transports: %d KiB and %.1f goroutines for a connection", n, each>>10, routine)
		}
	}
}
