package main

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/checkpoint"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestWhoCannotTrainOnSaves: a run that ends for a gradient that is no number keeps what
// was learned before it, although no checkpoint was due.
func TestWhoCannotTrainOnSaves(t *testing.T) {
	folder := t.TempDir()
	code, _, logged := try("run", "--dataset", "mnist", "--data", pictures(t, 200, 20), "--model", "softmax", "--batch", "10", "--steps", "300",
		"--lr", "1e36", "--schedule", "constant", "--warmup", "0", "--strategy", "alone", "--checkpoint", folder, "--checkpoint-every", "end")
	if code != cli.ExitFailed || !strings.Contains(logged, "lower the learning rate") {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	if names, err := (checkpoint.Folder{Dir: folder}).Names(); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, error %v", names, err)
	}
}
