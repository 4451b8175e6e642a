package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestLocalStopsWhenGood: processes stop at an aim that they soon reach, of work that they would need long for, and
// keep their best model.
func TestLocalStopsWhenGood(t *testing.T) {
	t.Parallel()
	data, folder := clitest.Pictures(t, 400, 200), t.TempDir()
	history := filepath.Join(t.TempDir(), "run.jsonl")
	for by, args := range map[string][]string{
		"accuracy": {"--until", "accuracy=0.9", "--until", "plateau=1000", "--checkpoint", folder, "--history", history, "--cross-evaluate"},
		"deadline": {"--deadline", "3s", "--in-process"},
	} {
		args = append([]string{"--peers", "3", "--epochs", "1000", "--step-time", "10ms"}, args...)
		out, err := command(t, localArgs(data, args...)...).Output()
		if err != nil {
			t.Fatalf("%s: %v", by, err)
		}
		r := lastLine(t, string(out))
		if r.StoppedBy != by || r.Seconds > 60 {
			t.Errorf("stopped by %q after %.1f s, want %s", r.StoppedBy, r.Seconds, by)
		}
		if by == "deadline" {
			continue
		}
		if r.BestAccuracy == nil || *r.BestAccuracy < 0.9 || *r.BestAccuracy < r.TestAccuracy.Max {
			t.Errorf("the best is %v of %+v", r.BestAccuracy, r.TestAccuracy)
		}
		if c := r.Cross; c == nil || len(c.Peers) != 3 || len(c.Accuracy) != 3 || c.Accuracy[2][0] < 0.8 {
			t.Errorf("models on others' data: %+v", c)
		}
		if code, text, _ := try("plot", history, "--json"); code != 0 || !strings.Contains(text, `"peers":3`) || !strings.Contains(text, `"spoilt":0`) {
			t.Errorf("the history: %d, %s", code, text)
		}
		code, text, _ := try("inspect", folder+"/peer-0/best.safetensors", "--json")
		var file struct {
			Parameters int `json:"parameters"`
		}
		if err := json.Unmarshal([]byte(text), &file); code != 0 || err != nil {
			t.Errorf("the best model: %d, %s, %v", code, text, err)
		}
	}
}
