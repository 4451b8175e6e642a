package hostiletest_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "let the hostile world have one and two crooks too, and train for as long as docs/TESTING.md says")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventually waits in virtual time until a condition holds.
func eventually(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
