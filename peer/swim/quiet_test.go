package swim

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestOrdinaryNewsAreNoWarnings: what comings and goings bring is told for debugging or
// information, and what goes on and on is one warning an hour, not one a message.
func TestOrdinaryNewsAreNoWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zapcore.DebugLevel)
		log := zap.New(core)
		g, w := newGate(nil, log), newLogWriter(log, nil)
		for name, c := range map[string]struct {
			line  func()
			burst int
			usual zapcore.Level
		}{
			"beyond what is signed": {func() { g.refuse("p", beyondSigned) }, ordinaryBurst, zapcore.DebugLevel},
			"denials":               {func() { _, _ = w.Write([]byte("[WARN] memberlist: Refuting a dead message (from: p)\n")) }, denialBurst, zapcore.InfoLevel},
			"malformed":             {func() { g.refuse("p", malformed) }, 0, zapcore.DebugLevel},
		} {
			for i := range c.burst + 500 {
				want := c.usual
				if i == c.burst || c.burst == 0 {
					want = zapcore.WarnLevel
				}
				if c.line(); logged.TakeAll()[0].Level != want {
					t.Errorf("%s, line %d: want it at level %s", name, i, want)
				}
			}
			time.Sleep(time.Hour)
		}
	})
}
