package main

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
)

// TestAStepOfSeveralBatches: three batches of 10 make the step that one of 30 makes, and an epoch has as many of them.
func TestAStepOfSeveralBatches(t *testing.T) {
	t.Parallel()
	var whole, parts result.Result
	for r, flags := range map[*result.Result][]string{&whole: {"--batch", "30"}, &parts: {"--batch", "10", "--accumulate", "3"}} {
		code, out, logged := try(append([]string{"run", "--strategy", "alone", "--dataset", "mnist", "--data", clitest.Pictures(t, 600, 100),
			"--model", "softmax", "--epochs", "2", "--json"}, flags...)...)
		if code != cli.ExitDone {
			t.Fatalf("exit code %d\n%s", code, logged)
		}
		clitest.LastLine(t, out, r)
	}
	if whole.Steps != 40 || parts.Steps != whole.Steps || math.Abs(float64(parts.TestLoss-whole.TestLoss)) > 1e-5 {
		t.Errorf("%d steps to a loss of %v; of one batch %d to %v, want 40", parts.Steps, parts.TestLoss, whole.Steps, whole.TestLoss)
	}
}
