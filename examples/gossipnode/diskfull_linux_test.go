package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/inspect"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// onSmallDisk is a shell command line that makes a file system of its own in memory, of
// $1 bytes in folder $2, runs what follows there, says with which code that ended, what
// is in the folder, and what inspect finds in the newest checkpoint.
const onSmallDisk = `
size=$1 folder=$2; shift 2
mount -t tmpfs -o size=$size small "$folder" || exit 99
"$0" "$@"
echo "exit code $?"
ls -A "$folder"
"$0" inspect "$folder" --json`

// TestDiskFull shows that a full disk harms neither the run, which goes on to its end,
// nor the checkpoints that are there, and that it is said once an interval.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond // many to a run, on any machine
	folder := t.TempDir()
	if out, err := exec.Command("unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=64k small "$0"`, folder).CombinedOutput(); err != nil {
		t.Skipf("needs leave to mount a file system in a namespace of its own: %v: %s", err, out)
	}
	// A checkpoint takes 64 kB and more: two have room, and ten would be kept.
	args := []string{
		"-rm", "sh", "-c", onSmallDisk, os.Args[0], "160k", folder,
		"run", "--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--model", "softmax", "--batch", "10", "--lr", "0.01", "--listen", settings.Loopback,
		"--checkpoint", folder, "--checkpoint-every", interval.String(), "--keep", "10", "--steps", "60000", "--json",
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	var out, logged bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logged
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &logged)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var (
		r     result.Result
		found inspect.Inspection
	)
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || r.Steps < 60000 || r.TestAccuracy.Min < 0.95 {
		t.Errorf("error %v, result %+v\n%s", err, r, &out)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &found); err != nil || !found.Sound || found.Progress == nil || found.Progress.Step == 0 {
		t.Errorf("error %v, the newest checkpoint is %+v\n%s", err, found, &out)
	}
	if lines[1] != "exit code 1" { // the last one could not be saved
		t.Errorf("%s, want 1\n%s", lines[1], &logged)
	}
	if strings.Contains(out.String(), ".partial") || strings.Count(out.String(), ".safetensors\n") != 2 {
		t.Errorf("want two whole checkpoints:\n%s", &out)
	}
	failures := strings.Count(logged.String(), "no checkpoint could be saved")
	if most := int(time.Since(began)/interval) + 1; failures < 2 || failures > most {
		t.Errorf("%d failures are logged, want 2 to %d\n%s", failures, most, &logged)
	}
	if !strings.Contains(logged.String(), "no space left on device") || !strings.Contains(logged.String(), "the last checkpoint could not be saved") {
		t.Errorf("what is wrong is not said:\n%s", &logged)
	}
}
