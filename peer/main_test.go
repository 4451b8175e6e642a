package peer_test

import (
	"flag"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// waiting is how many tests that call t.Parallel run at once, unless -parallel says
// otherwise: those over loopback wait more than they work.
const waiting = "4"

// Tests that take a while run beside each other: those in virtual time, and those over
// loopback whose bounds have room. Tests that count allocations, memory or goroutines run
// alone, which go test does with all that do not call t.Parallel. The heap may grow up to a
// bound: flocks hold little and allocate much.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	goleak.VerifyTestMain(m)
}
