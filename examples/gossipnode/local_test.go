package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/token"
	"github.com/seed-97356399/murmuration/examples/gossipnode/watch"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// command prepares gossipnode as a process of its own, which dies with the test.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return commandWithin(t, 3*time.Minute, args...)
}

// commandWithin is a command that may take so long.
func commandWithin(t *testing.T, bound time.Duration, args ...string) *exec.Cmd {
	t.Helper()
	return clitest.Command(t, bound, args...)
}

// humble is a command that does nothing but keep processors busy while a test looks at
// it, so that it leaves them to whoever has work to do, if this machine can say so.
func humble(program string, args ...string) []string {
	if nice, err := exec.LookPath("nice"); err == nil {
		return append([]string{nice, "-n", "10", program}, args...)
	}
	return append([]string{program}, args...)
}

// localArgs are those of a small local run.
func localArgs(data string, more ...string) []string {
	args := []string{"local", "--dataset", "mnist", "--data", data, "--model", "softmax", "--batch", "10", "--lr", "0.01", "--json"}
	return append(args, more...)
}

// checkLearned tests that the pictures, which are easy, have been learned.
func checkLearned(t *testing.T, r result.Result) {
	t.Helper()
	if r.TestAccuracy.Min < 0.95 || r.TestAccuracy.Max-r.TestAccuracy.Min > 0.02 {
		t.Errorf("accuracy %+v, want at least 0.95 everywhere", r.TestAccuracy)
	}
}

// skewed are flags with which each of two peers sees hardly anything of some digits.
var skewed = []string{"--shard", "dirichlet=1", "--codec", "bf16", "--optimizer", "adamw", "--schedule", "step"}

// TestLocal shows that peers that are processes and peers that are goroutines
// learn together, and tell so.
func TestLocal(t *testing.T) {
	data := clitest.Pictures(t, 400, 200)
	for _, c := range []struct {
		name  string
		peers int
		steps int
		args  []string
	}{
		// A step takes a tenth of a millisecond: of few steps, a peer that a busy machine lets wait
		// for a moment would find all done by the others, and end with what it began with.
		{"processes", 4, 4000, nil},
		{"goroutines", 2, 4000, []string{"--in-process"}},
		// How often the two have talked by the end is this machine's affair; what they learn by it
		// is TestSkewedPartsAreLearned's.
		{"skewed", 2, 4000, append([]string{"--in-process"}, skewed...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, logged bytes.Buffer
			cmd := command(t, localArgs(data, append(c.args, "--peers", strconv.Itoa(c.peers), "--steps", strconv.Itoa(c.steps), "--every", "5")...)...)
			cmd.Stdout, cmd.Stderr = &out, &logged
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &logged)
			}
			r := lastLine(t, out.String())
			if c.name != "skewed" {
				checkLearned(t, r)
			}
			if r.Peers != c.peers || r.PeersLost != 0 || r.Steps < uint64(c.peers*c.steps)*19/20 || r.Exchanges == 0 || r.BitsPerParameter == 0 {
				t.Errorf("%+v", r)
			}
			if strings.Count(out.String(), "\n") != 1 {
				t.Errorf("standard output has more than the result:\n%s", &out)
			}
			if !strings.Contains(logged.String(), "Held-out accuracy on mnist") {
				t.Errorf("no summary on standard error:\n%s", &logged)
			}
			if n := strings.Count(logged.String(), token.Prefix); n != 1 {
				t.Errorf("a token is shown %d times, want once:\n%s", n, &logged)
			}
		})
	}
}

// TestLocalAlone shows that alone means alone: no exchange, no connection, and
// only the peer's own part of the data.
func TestLocalAlone(t *testing.T) {
	code, out, logged := try(localArgs(clitest.Pictures(t, 400, 200), "--in-process", "--peers", "2", "--strategy", "alone", "--epochs", "3")...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	r := lastLine(t, out)
	if want := uint64(2 * 3 * 200 / 10); r.Steps != want || r.Exchanges != 0 || r.ConnectionsMax != 0 || r.BytesSent != 0 {
		t.Errorf("%d steps, want %d; %+v", r.Steps, want, r)
	}
}

// longRun starts a local run of three processes that takes its time, and waits
// until all of them train. It gives the processes' ids.
func longRun(t *testing.T, args ...string) (cmd *exec.Cmd, children []int, out *bytes.Buffer) {
	t.Helper()
	return longRunOf(t, 3, args...)
}

// longRunOf is a longRun of so many processes.
func longRunOf(t *testing.T, peers int, args ...string) (cmd *exec.Cmd, children []int, out *bytes.Buffer) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc to find the children")
	}
	out = new(bytes.Buffer)
	cmd = command(t, localArgs(clitest.Pictures(t, 400, 200), append(args, "--peers", strconv.Itoa(peers), "--every", "20")...)...)
	cmd.Stdout = out
	logged, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := clitest.ScanLines(t, logged)
	for line := range lines {
		if strings.Contains(line, "peers "+strconv.Itoa(peers)) {
			break
		}
	}
	go func() {
		for range lines { // the pipe must not fill up
		}
	}()
	if children = clitest.ChildrenOf(t, cmd.Process.Pid); len(children) != peers {
		t.Fatalf("%d children, want %d", len(children), peers)
	}
	return cmd, children, out
}

// TestKilledPeer shows that the others do the work of a peer that is killed.
func TestKilledPeer(t *testing.T) {
	t.Parallel()
	cmd, children, out := longRun(t, "--steps", "6000")
	victim, err := os.FindProcess(children[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r := lastLine(t, out.String())
	checkLearned(t, r)
	if r.Peers != 3 || r.PeersLost != 1 {
		t.Errorf("%d peers, %d lost, want 3 and 1", r.Peers, r.PeersLost)
	}
}

// TestInterrupted shows that an interrupt ends everything in good order: exit
// code 1, no result, no orphan, and the checkpoints are there to go on from.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd, children, out := longRun(t, "--epochs", "1000000", "--step-time", "2ms", "--checkpoint", folder)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != cli.ExitFailed || out.Len() > 0 {
		t.Errorf("ended with %v, standard output %q", err, out)
	}
	clitest.CheckGone(t, children)
	for number := range 3 {
		kept := checkpoint.Folder{Dir: filepath.Join(folder, "peer-"+strconv.Itoa(number))}
		if names, err := kept.Names(); len(names) == 0 || len(names) > 3 {
			t.Errorf("peer %d has kept %v, error %v", number, names, err)
		}
	}
	code, text, logged := try(localArgs(clitest.Pictures(t, 400, 200), "--in-process", "--peers", "2", "--steps", "3", "--checkpoint", folder)...)
	if code != cli.ExitDone {
		t.Fatalf("taking up the checkpoint: exit code %d\n%s", code, logged)
	}
	if r := lastLine(t, text); r.ResumedStep == 0 {
		t.Error("resumed_step is 0")
	}
}

// TestParentKilled shows that children do not outlive a parent that had no
// chance to stop them.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	cmd, children, _ := longRun(t, "--epochs", "1000000", "--step-time", "2ms")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	clitest.CheckGone(t, children)
}

// TestRunJoins shows two peers of run find each other, and what a parent is told.
func TestRunJoins(t *testing.T) {
	t.Parallel()
	args := []string{
		"run", "--report", "--listen", "127.0.0.1:0", "--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--model", "softmax",
		"--batch", "10", "--lr", "0.01", "--min-peers", "2", "--steps", "4000", "--every", "5", // as in TestLocal
	}
	start := func(more ...string) <-chan string {
		cmd := command(t, append(args, more...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		life, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = life.Close(); _ = cmd.Wait() })
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := life.Write([]byte("\n")); err != nil { // it may train
			t.Fatal(err)
		}
		return clitest.ScanLines(t, out)
	}
	next := func(lines <-chan string) (r watch.Report) {
		line, ok := <-lines
		if err := json.Unmarshal([]byte(line), &r); !ok || err != nil {
			t.Fatalf("report %q: %v", line, err)
		}
		return r
	}
	first := start("--part", "0/2")
	started := next(first)
	if started.Kind != watch.ReportStarted || len(started.Addresses) == 0 {
		t.Fatalf("first report %+v", started)
	}
	second := start("--part", "1/2", "--join", started.Addresses[0])
	for _, lines := range []<-chan string{first, second} {
		var r watch.Report
		for r.Kind != watch.ReportResult {
			if r = next(lines); r.Kind == watch.ReportFailed {
				t.Fatalf("failed: %s", r.Failure)
			}
		}
		got := r.Share.Result
		checkLearned(t, got)
		if got.Peers != 2 || got.Exchanges == 0 || got.JoinSeconds == 0 || got.Peer == "" {
			t.Errorf("%+v", got)
		}
	}
}

// TestLocalJoinsNobody shows that an outside address that answers nothing keeps
// no peer of a local run from training.
func TestLocalJoinsNobody(t *testing.T) {
	t.Parallel()
	var out, logged bytes.Buffer
	cmd := command(t, localArgs(clitest.Pictures(t, 400, 200), "--peers", "2", "--steps", "200", "--join", "127.0.0.1:9")...)
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	if r := lastLine(t, out.String()); r.Peers != 2 || r.FirstExchangeSeconds == 0 || strings.Contains(logged.String(), "took no step") {
		t.Errorf("%+v\n%s", r, &logged)
	}
}
