package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestOneProcessAFolder shows that a second process is kept from a folder in which one
// keeps its checkpoints, with a word that says who has it, and that the folder is free
// as soon as the first is killed.
func TestOneProcessAFolder(t *testing.T) {
	t.Parallel()
	data, folder := clitest.Pictures(t, 400, 200), t.TempDir()
	first := command(t, runArgs(data, folder, "--epochs", "1000000", "--step-time", "2ms", "--checkpoint-every", "50ms")...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	kept := checkpoint.Folder{Dir: folder}
	clitest.Eventually(t, "the first saves", func() bool { names, _ := kept.Names(); return len(names) > 0 })
	code, out, logged := try(runArgs(data, folder, "--steps", "1")...)
	if code != cli.ExitFailed || out != "" {
		t.Errorf("exit code %d, result %q", code, out)
	}
	for _, want := range []string{folder, fmt.Sprintf("pid %d", first.Process.Pid), "folder of its own with --checkpoint"} {
		if !strings.Contains(logged, want) {
			t.Errorf("no %q in\n%s", want, logged)
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	for range 2 { // and it is free again after an end in good order
		if code, _, logged = try(runArgs(data, folder, "--steps", "1")...); code != cli.ExitDone || !strings.Contains(logged, "resuming from a checkpoint") {
			t.Fatalf("exit code %d\n%s", code, logged)
		}
	}
}
