package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestEffectiveConfig shows that config prints every setting as it holds, with where it
// comes from: a flag before the environment, that before the file, that before the
// default.
func TestEffectiveConfig(t *testing.T) {
	t.Setenv("GOSSIPNODE_BATCH", "20")
	t.Setenv("GOSSIPNODE_LR", "0.5")
	t.Setenv("GOSSIPNODE_JOIN", "a:1,b:2")
	file := clitest.WriteFile(t, "node.yaml", "batch: 10\nlr: 1e-3\ncodec: bf16\nkeep: 5\ncheckpoint: kept\n")
	code, text, logged := try("config", "--config", file, "--batch", "30", "--json")
	var all map[string]struct {
		Value       any
		From, Place string
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, error %v\n%s%s", code, err, text, logged)
	}
	for key, want := range map[string]struct {
		value       any
		from, place string
	}{
		"batch":  {30.0, "flag", "--batch"},
		"lr":     {0.5, "environment", "environment variable GOSSIPNODE_LR"},
		"codec":  {"bf16", "file", file + ":3"},
		"keep":   {5.0, "file", file + ":4"},
		"model":  {"mlp", "default", ""},
		"epochs": {4.0, "default", ""},
	} {
		if got := all[key]; got.Value != want.value || got.From != want.from || !strings.HasPrefix(got.Place, want.place) {
			t.Errorf("%s: %+v, want %+v", key, got, want)
		}
	}
	if join, ok := all["join"].Value.([]any); !ok || len(join) != 2 {
		t.Errorf("join: %+v", all["join"])
	}
	if _, ok := all["steps"]; ok {
		t.Error("there are steps and epochs")
	}
}

// TestEffectiveConfigIsAFile shows that what config prints is a configuration file that
// gives the same settings.
func TestEffectiveConfigIsAFile(t *testing.T) {
	args := []string{"config", "--batch", "7", "--join", "a:1", "--join", "b:2", "--quantized", "50", "--run", "it's: #1", "--json=false", "--steps", "9", "--min-peers-wait", "90s"}
	code, first, logged := try(args...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	code, second, logged := try("config", "--config", clitest.WriteFile(t, "again.yaml", first))
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s\n%s", code, logged, first)
	}
	without := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			at := strings.LastIndex(line, "  # ")
			lines = append(lines, strings.TrimSpace(line[:at]))
		}
		return lines
	}
	a, b := without(first), without(second)
	if strings.Join(a, "\n") != strings.Join(b, "\n") {
		t.Errorf("printed:\n%s\nof that file:\n%s", first, second)
	}
	if !strings.Contains(first, "\n# model: mlp") || !strings.Contains(first, "\nsteps: 9 ") || strings.Contains(first, "epochs") {
		t.Error(first)
	}
}

// TestBadEffectiveConfig shows that config refuses what run refuses, with the nearest
// key where one is unknown.
func TestBadEffectiveConfig(t *testing.T) {
	for text, want := range map[string]string{
		"chekpoint: x\n":              `:1: unknown key "chekpoint": did you mean "checkpoint"?`,
		"checkpoint-evry: 1m\n":       `did you mean "checkpoint-every"?`,
		"checkpoint-every: often\n":   `:1: checkpoint-every "often": want auto`,
		"keep: 0\n":                   `:1: keep 0: want 1 to`,
		"keep: 5\n":                   `:1: keep needs --checkpoint`,
		"checkpoint-every: 5m\n":      `:1: checkpoint-every needs --checkpoint`,
		"final-wait: 5m\n":            `:1: final-wait needs --final merge`,
		"join: [127.0.0.1:0]\n":       `:1: join "127.0.0.1:0": want host:port`,
		"leave-within: 0s\n":          `:1: leave-within 0s: want a positive time`,
		"batch: 5\nstrategy: never\n": `:2: strategy "never": want`,
	} {
		code, out, logged := try("config", "--config", clitest.WriteFile(t, "node.yaml", text))
		if code != cli.ExitUsage || out != "" || !strings.Contains(logged, want) {
			t.Errorf("%q: exit code %d, standard output %q, no %q in\n%s", text, code, out, want, logged)
		}
	}
}
