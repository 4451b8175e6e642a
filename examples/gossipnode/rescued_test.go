package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWhoCannotTrainOnSaves: a run that ends for a gradient that is no number keeps what
// was learned before it, although no checkpoint was due.
func TestWhoCannotTrainOnSaves(t *testing.T) {
	folder := t.TempDir()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "0.weight", Shape: []int{10, 784}}, tensor.Spec{Name: "0.bias", Shape: []int{10}})
	if err != nil {
		t.Fatal(err)
	}
	huge := tensor.NewParams(layout) // else a step as long as those below is refused at once, and nothing is learned
	for i := range huge.Vector() {
		huge.Vector()[i] = 1e33
	}
	var init bytes.Buffer
	if err := huge.WriteSafetensors(&init, nil); err != nil {
		t.Fatal(err)
	}
	code, _, logged := try("run", "--dataset", "mnist", "--data", clitest.Pictures(t, 200, 20), "--model", "softmax", "--batch", "10", "--steps", "300",
		"--lr", "1e36", "--init", clitest.WriteFile(t, "init", init.String()), "--schedule", "constant", "--warmup", "0", "--strategy", "alone", "--checkpoint", folder, "--checkpoint-every", "0")
	if code != cli.ExitFailed || !strings.Contains(logged, "lower the learning rate") {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	if names, err := (checkpoint.Folder{Dir: folder}).Names(); err != nil || len(names) != 1 {
		t.Errorf("the folder holds %v, error %v", names, err)
	}
}
