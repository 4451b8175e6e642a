package peer_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Tests that take a while run beside each other: those in virtual time, and those over
// loopback whose bounds have room. Tests that count allocations, memory or goroutines run
// alone, which go test does with all that do not call t.Parallel.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
