package tasks

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestNoTaskOutlivesTheEnd: who ends a group has waited for what was started, and nothing
// is started any more.
func TestNoTaskOutlivesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var done atomic.Int32
		for range 3 {
			if !g.Spawn(func() { time.Sleep(time.Second); done.Add(1) }) {
				t.Fatal("a task is too late before the end")
			}
		}
		g.End()
		if done.Load() != 3 {
			t.Errorf("%d of 3 tasks are done at the end", done.Load())
		}
		if g.Spawn(func() { t.Error("a task runs after the end") }) {
			t.Error("a task is started after the end")
		}
	})
}
