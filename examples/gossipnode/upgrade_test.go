package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

var older = flag.String("older", "", "revision or tag of an older release for TestUpgrade to build and train with (default: the last tag, if there is one)")

// lastTag is the newest release before this revision, or empty: a clone may have no tags.
func lastTag(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^").CombinedOutput()
	if err != nil {
		t.Logf("no tag: %s", out)
		return ""
	}
	return strings.TrimSpace(string(out))
}

// buildOlder builds gossipnode as it was at a revision.
func buildOlder(t *testing.T, revision string) (program string) {
	t.Helper()
	dir := t.TempDir()
	program = filepath.Join(dir, "older")
	for _, step := range [][]string{
		{"git", "clone", "--quiet", "--no-checkout", "../..", filepath.Join(dir, "source")},
		{"git", "-C", filepath.Join(dir, "source"), "checkout", "--quiet", "--detach", revision},
		{"go", "build", "-C", filepath.Join(dir, "source"), "-trimpath", "-o", program, "./examples/gossipnode"}, // -trimpath: what was compiled elsewhere is used
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(step, " "), err, out)
		}
	}
	return program
}

// TestUpgrade shows that peers of two releases with the same wire version train in one
// run: each half joins a peer of the other release, exchanges with it, and learns.
func TestUpgrade(t *testing.T) {
	revision := cmp.Or(*older, lastTag(t))
	if revision == "" {
		t.Skip("no tag of a release is here: give -older with a revision of this wire version")
	}
	old, data := buildOlder(t, revision), clitest.Pictures(t, 400, 200)
	var (
		processes []*exec.Cmd
		out, logs [4]sharedBuffer
	)
	for i := range 4 {
		args := []string{"run", "--dataset", "mnist", "--data", data, "--model", "softmax", "--batch", "10", "--lr", "0.01", "--steps", "2000", "--every", "5",
			"--part", fmt.Sprintf("%d/4", i), "--listen", settings.Loopback, "--min-peers", "4", "--json"}
		for j := range min(i, 2) { // one of each release
			args = append(args, "--join", joinAddress(t, &logs[j]))
		}
		cmd := commandWithin(t, 2*time.Minute, args...)
		if i%2 == 1 {
			cmd.Path, cmd.Env = old, os.Environ()
		}
		cmd.Stdout, cmd.Stderr = &out[i], &logs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for i, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("peer %d: %v\n%s", i, err, &logs[i])
		}
		text := out[i].String() // of which an older release may have less, and a newer one more
		for _, want := range []string{`"peers":4`, `"failed":0`} {
			if !strings.Contains(text, want) {
				t.Errorf("peer %d: no %s in %s\n%s", i, want, text, &logs[i])
			}
		}
		if strings.Contains(text, `"exchanges":0`) || !strings.Contains(text, `"test_accuracy":{"mean":0.9`) && !strings.Contains(text, `"test_accuracy":{"mean":1`) {
			t.Errorf("peer %d has not learned with the others: %s", i, text)
		}
	}
}
