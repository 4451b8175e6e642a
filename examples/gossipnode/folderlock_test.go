package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestOneProcessAFolder shows that a second process is kept from a folder in which one
// keeps its checkpoints, with a word that says who has it, and that the folder is free
// as soon as the first is killed.
func TestOneProcessAFolder(t *testing.T) {
	t.Parallel()
	data, folder := pictures(t, 400, 200), t.TempDir()
	first := command(t, runArgs(data, folder, "--epochs", "1000000", "--"+cadenceFlag, "20")...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	kept := checkpoints{dir: folder}
	eventually(t, "the first saves", func() bool { names, _ := kept.names(); return len(names) > 0 })
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

// TestFolderLock shows what is said of a holder that is not known, and of folders that
// cannot be locked.
func TestFolderLock(t *testing.T) {
	log, seen := observer.New(zap.WarnLevel)
	c := checkpoints{dir: filepath.Join(t.TempDir(), "made", "here")}
	if held, err := c.lock(zap.New(log)); held != nil || err != nil {
		t.Fatalf("of a folder that is not there: %+v, error %v", held, err)
	}
	held, err := c.make(zap.New(log))
	if seen.Len() > 0 {
		t.Skip(seen.All()[0].Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.Truncate(filepath.Join(c.dir, lockFile), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lock(zap.New(log)); err == nil || !strings.Contains(err.Error(), c.dir+" is in use by another process: ") {
		t.Errorf("error %v", err)
	}
	file := checkpoints{dir: writeFile(t, "file", "")}
	if _, err := file.make(zap.New(log)); err == nil || !strings.Contains(err.Error(), "making the checkpoint folder") {
		t.Errorf("a file: error %v", err)
	}
}
