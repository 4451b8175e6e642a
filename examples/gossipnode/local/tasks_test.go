package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestTasks: a flock carries out the tasks of a file, each sample once.
func TestTasks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.yaml")
	text := "tasks:\n - {name: monday, kind: epoch, samples: 600}\n - {name: fit, kind: fit, samples: 200}\n - {name: judge, kind: evaluation, samples: 100}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := program.Try("local", "--peers", "2", "--in-process", "--model", "softmax", "--tasks", path, "--json")
	var got struct {
		Tasks []struct {
			Task, Member string
			Start, End   float64
			Samples      int
			Accuracy     *float64
		}
		Twice   int    `json:"samples_twice"`
		Skipped int    `json:"samples_skipped"`
		By      string `json:"stopped_by"`
	}
	if err := json.Unmarshal([]byte(out), &got); code != cli.ExitDone || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	samples := map[string]int{}
	for _, one := range got.Tasks {
		samples[one.Task] += one.Samples
		if one.Member == "" || one.End <= one.Start || (one.Accuracy != nil) != (one.Task == "judge") {
			t.Errorf("%+v", one)
		}
	}
	if samples["monday"] != 600 || samples["fit"] != 200 || samples["judge"] != 100 || got.Twice != 0 || got.Skipped != 0 || got.By != "tasks" {
		t.Errorf("%v, %+v", samples, got)
	}
	if code, _, stderr := program.Try("local", "--peers", "2", "--in-process", "--tasks", path, "--strategy", "allreduce"); code != cli.ExitUsage {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
