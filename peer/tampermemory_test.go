package peer_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestTamperedFramesLeaveNothingBehind: the hundredth broken exchange costs no more
// memory, and leaves no more goroutines, than the first ones.
func TestTamperedFramesLeaveNothingBehind(t *testing.T) {
	quick := tamperings[4:] // those after which nobody waits
	anything := tampering{name: "anything", slices: true, alter: func(s *tamperedStream, header wire.Header, frame []byte) [][]byte {
		return quick[s.random.IntN(len(quick))].alter(s, header, frame)
	}}
	networks, join := onLoopback(t)
	pair := startTampered(t, anything, pairings[1], networks, join)
	pairs := []*tamperedPair{pair}
	const few, more = 10, 30
	pair.often = func(string) int64 { return few }
	survive(t, pairs)
	memory, goroutines := held()
	pair.often = func(string) int64 { return few + more }
	survive(t, pairs)
	const noise = 2 << 20 // what libp2p's buffers come and go by
	now, running := held()
	fits := func() bool { return now <= memory+noise && running <= goroutines+20 }
	for end := time.Now().Add(tamperedPatience); !fits() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		now, running = held() // what goes only later has not been left behind
	}
	t.Logf("%d bytes and %d goroutines after %d broken exchanges, %d and %d after %d more", memory, goroutines, 2*few, now, running, 2*more)
	if !fits() {
		t.Error("they have left memory or goroutines behind")
	}
	closeAll(pairs)
}

// held is the memory that is in use, and the number of goroutines.
func held() (bytes uint64, goroutines int) {
	runtime.GC()
	runtime.GC() // frees what pools held at the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, runtime.NumGoroutine()
}
