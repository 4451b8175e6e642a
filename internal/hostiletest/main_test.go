package hostiletest_test

import (
	"flag"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "let the hostile world have one and two crooks too, and train for as long as docs/TESTING.md says")

// TestMain lets the heap grow up to a bound: flocks hold little and allocate much.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	goleak.VerifyTestMain(m)
}

// eventually waits in virtual time until a condition holds.
func eventually(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
