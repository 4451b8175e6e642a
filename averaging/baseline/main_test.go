package baseline_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: worlds of machines hold little and allocate much, and would spend a
// sixth of their time on collecting garbage. A property is tried with fifty draws for each of
// the strategies, unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
