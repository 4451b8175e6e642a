package main

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/inspect"
	"github.com/seed-97356399/murmuration/examples/gossipnode/keys"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestRunResumes shows that a run which is given more to do goes on from its last
// checkpoint, as the same peer and in another life; that one with nothing left to do
// ends at once and saves nothing; and that another optimizer begins anew.
func TestRunResumes(t *testing.T) {
	data, folder := clitest.Pictures(t, 400, 200), filepath.Join(t.TempDir(), "kept")
	var before result.Result
	for i, c := range []struct {
		args        []string
		steps, from uint64
		files       int
		says        string
	}{
		{[]string{"--steps", "100"}, 100, 0, 1, ""},
		{[]string{"--steps", "300"}, 300, 100, 2, "resuming from a checkpoint"},
		{[]string{"--steps", "300"}, 300, 300, 2, "has done its work"},
		{[]string{"--steps", "350", "--optimizer", "adamw"}, 350, 300, 3, "begins without the state of the checkpoint"},
		{[]string{"--steps", "360", "--optimizer", "adamw", "--warmup", "0.5"}, 360, 350, 3, `"now": "cosine, rate 0.01, warm-up 0.5"`},
	} {
		code, out, logged := try(runArgs(data, folder, append(c.args, "--checkpoint-every", "0")...)...)
		if code != cli.ExitDone || !strings.Contains(logged, c.says) {
			t.Fatalf("%v: exit code %d, no %q in\n%s", c.args, code, c.says, logged)
		}
		r := lastLine(t, out)
		if r.Steps != c.steps || r.ResumedStep != c.from {
			t.Errorf("%v: %d steps from %d on, want %d from %d", c.args, r.Steps, r.ResumedStep, c.steps, c.from)
		}
		if i > 0 && r.Peer != before.Peer {
			t.Errorf("%v: peer %s, and it was %s", c.args, r.Peer, before.Peer)
		}
		kept := checkpoint.Folder{Dir: folder}
		if names, err := kept.Names(); err != nil || len(names) != c.files {
			t.Errorf("%v: checkpoints %v, error %v", c.args, names, err)
		}
		before = r
	}
	found, err := inspect.Inspect(folder)
	if err != nil || found.Progress.Incarnation != 4 || found.Progress.Optimizer != "adamw" || found.Peer != before.Peer {
		t.Errorf("%+v, error %v", found.Progress, err)
	}
	if code, _, logged := try(runArgs(data, folder, "--steps", "360")...); code != cli.ExitDone || strings.Contains(logged, "another peer's") {
		t.Errorf("the same peer: exit code %d\n%s", code, logged)
	}
	key := filepath.Join(t.TempDir(), "other.key")
	if _, err := keys.Generate(key, false); err != nil {
		t.Fatal(err)
	}
	if code, _, logged := try(runArgs(data, folder, "--steps", "360", "--key", key)...); code != cli.ExitDone || !strings.Contains(logged, "the checkpoint is another peer's") || !strings.Contains(logged, before.Peer) {
		t.Errorf("under another key: exit code %d\n%s", code, logged)
	}
	if info, err := os.Stat(filepath.Join(folder, "node.key")); err != nil || info.Mode().Perm() != keys.Mode {
		t.Errorf("the identity: %v, %v", info, err)
	}
}

// TestRunPassesOverATornCheckpoint shows that a file that is cut short is refused with a
// word, and the one before it gone on from.
func TestRunPassesOverATornCheckpoint(t *testing.T) {
	data, folder := clitest.Pictures(t, 400, 200), t.TempDir()
	for _, steps := range []string{"100", "150"} {
		if code, _, logged := try(runArgs(data, folder, "--steps", steps, "--checkpoint-every", "0")...); code != cli.ExitDone {
			t.Fatal(logged)
		}
	}
	torn := filepath.Join(folder, "checkpoint-000002.safetensors")
	if err := os.Truncate(torn, 5000); err != nil {
		t.Fatal(err)
	}
	code, out, logged := try(runArgs(data, folder, "--steps", "200")...)
	if code != cli.ExitDone || !strings.Contains(logged, "a checkpoint is refused; the one before it is used") || !strings.Contains(logged, torn) {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	if r := lastLine(t, out); r.ResumedStep != 100 || r.Steps != 200 {
		t.Errorf("%d steps from %d on", r.Steps, r.ResumedStep)
	}
}

// TestTerminated shows that SIGTERM, even twice at once, ends a peer in good order, within --leave-within,
// with exit code 1 and a checkpoint of what was learned, from which it goes on.
func TestTerminated(t *testing.T) {
	t.Parallel()
	data, folder := clitest.Pictures(t, 400, 200), t.TempDir()
	args := runArgs(data, folder, "--epochs", "1000000", "--step-time", "2ms", "--checkpoint-every", "0")
	var out, logged bytes.Buffer
	cmd := command(t, args...)
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := clitest.ScanLines(t, stderr)
	for line := range lines {
		fmt.Fprintln(&logged, line)
		if strings.Contains(line, "loss ") { // progress is told from the first step on
			break
		}
	}
	began := time.Now()
	for range 2 { // as GNU timeout sends it, to the process and to its group
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for line := range lines {
		fmt.Fprintln(&logged, line)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitFailed || out.Len() > 0 || !strings.Contains(logged.String(), "what was learned is kept in "+folder) {
		t.Errorf("ended with %v, standard output %q\n%s", err, &out, &logged)
	}
	if !strings.Contains(logged.String(), "no checkpoint in "+folder+": this peer begins anew") {
		t.Errorf("it does not say that it begins anew:\n%s", &logged)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("leaving took %s", took)
	}
	found, err := inspect.Inspect(folder)
	if err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	if !found.Sound || found.Progress.Step == 0 {
		t.Errorf("%+v", found.Progress)
	}
}

// TestTerminatedUnsaved shows that a peer whose folder has gone does not say, when it is
// asked to end, that what it learned is kept there.
func TestTerminatedUnsaved(t *testing.T) {
	t.Parallel()
	data, folder := clitest.Pictures(t, 400, 200), filepath.Join(t.TempDir(), "kept")
	var out, logged bytes.Buffer
	cmd := command(t, runArgs(data, folder, "--epochs", "1000000", "--step-time", "2ms", "--checkpoint-every", "50ms")...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "it has saved", func() bool { names, err := checkpoint.Folder{Dir: folder}.Names(); return err == nil && len(names) > 0 })
	if err := os.Rename(folder, folder+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	last := lines[len(lines)-1]
	if cmd.ProcessState.ExitCode() != cli.ExitFailed || strings.Contains(last, "is kept in") ||
		!strings.Contains(last, "interrupted, and the last checkpoint could not be saved: ") || !strings.Contains(last, folder+" has what was saved before") {
		t.Errorf("exit code %d, last line %q", cmd.ProcessState.ExitCode(), last)
	}
}

// TestTerminatedBeforeTheFirstStep shows that a peer which waits for others leaves when
// asked to, says that nothing was learned, and leaves the checkpoints as they are.
func TestTerminatedBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	data, folder := clitest.Pictures(t, 400, 200), t.TempDir()
	contents := func() map[string]string {
		kept := map[string]string{}
		names, err := checkpoint.Folder{Dir: folder}.Names()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			kept[name] = string(text)
		}
		return kept
	}
	silent, err := net.Listen("tcp", settings.Loopback) // which does not say a word
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for i, waiting := range [][]string{{"--min-peers", "2"}, {"--min-peers", "2"}, {"--join", silent.Addr().String()}} {
		had := contents()
		if len(had) != min(i, 1) {
			t.Fatalf("%d checkpoints", len(had))
		}
		var out bytes.Buffer
		cmd := command(t, runArgs(data, folder, append(waiting, "--keep", "1")...)...)
		cmd.Stdout = &out
		logged, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, last := clitest.ScanLines(t, logged), ""
		for line := range lines {
			if strings.Contains(line, "--join") { // it has introduced itself
				break
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for last = range lines {
		}
		want := "interrupted before the first step: nothing was learned, and the checkpoints in " + folder + " are as they were"
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitFailed || out.Len() > 0 || !strings.Contains(last, want) {
			t.Errorf("exit code %d, standard output %q, last line %q", cmd.ProcessState.ExitCode(), &out, last)
		}
		if !maps.Equal(contents(), had) {
			t.Error("the checkpoints have changed")
		}
		if code, _, logged := try(runArgs(data, folder, "--steps", strconv.Itoa(100*(i+1)), "--keep", "1")...); code != cli.ExitDone {
			t.Fatal(logged)
		}
	}
}
