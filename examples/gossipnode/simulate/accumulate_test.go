package simulate

import (
	"math"
	"testing"
)

// TestAStepOfSeveralBatches: three batches of 10 make the step that one of 30 makes. A strategy that begins to send a
// gradient before it is whole does so only if it is of one batch.
func TestAStepOfSeveralBatches(t *testing.T) {
	for strategy, later := range map[string]bool{"adpsgd": false, "allreduce": true} {
		line := small(t, "--peers", "4", "--points", "0", "--strategy", strategy)
		_, whole := simulateOnce(t, append(line, "--batch", "30")...)
		_, parts := simulateOnce(t, append(line, "--batch", "10", "--accumulate", "3")...)
		if parts.Steps != whole.Steps || math.Abs(float64(parts.TestLoss-whole.TestLoss)) > 1e-5 {
			t.Errorf("%s: %d steps to a loss of %v; of one batch %d to %v", strategy, parts.Steps, parts.TestLoss, whole.Steps, whole.TestLoss)
		}
		if whole.Seconds < parts.Seconds != later {
			t.Errorf("%s: %v s, of one batch %v s", strategy, parts.Seconds, whole.Seconds)
		}
	}
}
