package sim_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow up to a bound: worlds hold little and allocate much, and would
// spend a sixth of their time on collecting garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}
