package settings

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// TestAnEpochOfStages: without rounds each stage makes a step of each batch; in rounds each peer brings one, and makes a step, as it does
// where the model is whole.
func TestAnEpochOfStages(t *testing.T) {
	for strategy, want := range map[string]uint64{StrategyADPSGD: 300, StrategyAllReduce: 100} {
		var s Settings
		s.Strategy, s.Epochs, s.Batch, s.Table.Stages.Model = strategy, 1, 64, 3
		if w := s.Work(&dataset.Data{Total: 6400}); w.Steps != want {
			t.Errorf("%s: %d steps, want %d", strategy, w.Steps, want)
		}
	}
}
