package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// told starts a peer, and returns what it tells on standard error up to its first line of
// progress.
func told(t *testing.T, args ...string) (lines []string) {
	t.Helper()
	cmd := command(t, append([]string{"run", "--listen", settings.Loopback, "--epochs", "1000000", "--step-time", "2ms"}, args...)...)
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := clitest.ScanLines(t, logs)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range all {
		}
		_ = cmd.Wait()
	})
	for line := range all {
		if strings.Contains(line, "  loss ") {
			break
		}
		lines = append(lines, line)
	}
	return lines
}

// TestQuietStart shows that a peer starts with three lines for a person, each when it has
// happened, and logs what is ordinary with -v only.
func TestQuietStart(t *testing.T) {
	t.Parallel()
	const jargon = "how exchanges are coded"
	data := []string{"--dataset", "mnist", "--data", clitest.Pictures(t, 40, 20), "--batch", "10", "--lr", "0.01", "--model", "softmax"}
	first := told(t, data...)
	if len(first) != 3 || !strings.HasPrefix(first[0], "listening as ") || first[1] != "no other peer is here yet; there is no model to copy yet" || first[2] != "training softmax on mnist" {
		t.Fatalf("the first peer tells\n%s", strings.Join(first, "\n"))
	}
	_, invitation, _ := strings.Cut(first[0], "--join ")
	second := told(t, append(data, "--join", invitation)...)
	second = slices.DeleteFunc(second, func(line string) bool { return strings.HasPrefix(line, "as in the run that is joined") })
	if len(second) != 3 || !strings.HasPrefix(second[0], "listening as ") || second[1] != "joined 1 peer; model copied" || second[2] != first[2] {
		t.Errorf("one that joins tells\n%s", strings.Join(second, "\n"))
	}
	if all := strings.Join(told(t, append(data, "-v")...), "\n"); !strings.Contains(all, jargon) {
		t.Errorf("with -v there is no %q in\n%s", jargon, all)
	}
}
