package replica

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: models under test hold little and allocate much, and would spend a
// sixth of their time on collecting garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
