package peer_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// waiting is how many tests that call t.Parallel run at once, unless -parallel says
// otherwise: those over loopback wait more than they work.
const waiting = "4"

// Tests that take a while run beside each other: those in virtual time, and those over
// loopback whose bounds have room. Tests that count allocations, memory or goroutines run
// alone, which go test does with all that do not call t.Parallel.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
