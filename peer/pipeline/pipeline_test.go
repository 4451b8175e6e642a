package pipeline

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/quant"
)

// TestStagesLearn: two stages of two members, each with rows, learn what a whole model would, in every codec; members of a
// stage exchange among themselves, and all that was sent is accounted for.
func TestStagesLearn(t *testing.T) {
	for _, name := range []string{"raw", "bf16", "int8"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, perceptron(t, 2))
				w.codec, _ = quant.ByName(name)
				w.steps = 1200
				w.flock(2)
				for _, m := range w.all {
					if err := <-m.failed; !errors.Is(err, peer.ErrRunOver) {
						t.Fatalf("%s: %v", m.name, err)
					}
				}
				for _, m := range w.all {
					rows, stage := m.Counts()
					s := m.node.Stats()
					t.Logf("%s: rows %+v, stage %+v, %d steps, %d exchanges, loss %.3f", m.name, rows, stage, s.Steps, s.Exchanges.Completed(), m.Loss())
					if s.Exchanges.Completed() == 0 || rows.Done == 0 || stage.Done == 0 || rows.Lost+stage.Lost > 0 {
						t.Errorf("%s is idle, or has lost something", m.name)
					}
				}
				if a := w.accuracy(w.whole().Vector()); a < 0.8 {
					t.Errorf("accuracy %.3f", a)
				}
			})
		})
	}
}

var _ = time.Second
