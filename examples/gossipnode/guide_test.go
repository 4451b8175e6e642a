package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestGuide checks what docs/GUIDE.md has people type: every command and flag is there,
// and the file of settings is taken. docs/guide.sh does all of it.
func TestGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "GUIDE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, settings, _ := strings.Cut(string(page), "cat >flock.yaml <<'END'\n")
	settings, _, found := strings.Cut(settings, "END\n")
	if _, err := configured(clitest.WriteFile(t, "flock.yaml", settings)); err != nil || !found {
		t.Errorf("error %v for\n%s", err, settings)
	}
	commands, typed := 0, false
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "```") {
			typed = line == "```sh"
		}
		if !typed || !strings.HasPrefix(line, "./gossipnode ") {
			continue
		}
		commands++
		if code, _, logged := try(append(strings.Fields(line)[1:], "--help")...); code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", line, code, logged)
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands found", commands)
	}
}
