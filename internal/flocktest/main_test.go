package flocktest_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: these tests hold little and allocate much, and would spend a
// third of their time on collecting garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
