package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestRunFollows: a process begins with the first whole file of rows, names those that are not, trains, and ends with a result when
// it is asked to.
func TestRunFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "a,b,big\n"
	for i := range 400 {
		text += fmt.Sprintf("%d,%d,%v\n", i%20, i%7, i%20 > 9)
	}
	for name, content := range map[string]string{"whole.csv": text, "a-half.csv": text[:len(text)-3], "notes.txt": "?"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	history := filepath.Join(t.TempDir(), "run.jsonl")
	cmd := command(t, "run", "--follow", dir, "--dataset", "csv", "--target", "big", "--policy", "cost-aware", "--listen", settings.Loopback, "--history", history, "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "it trains", func() bool {
		text, _ := os.ReadFile(history)
		return strings.Contains(string(text), `"files":"whole.csv"`) && strings.Contains(string(text), `"training":1`)
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("asked to end: %v", err)
	}
	var r struct {
		Policy    string
		Trainings int
		Accuracy  *float64 `json:"mean_accuracy_over_time"`
		Arrived   int      `json:"arrived_rows"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(out.Bytes()), &r); err != nil || r.Policy != "cost-aware" || r.Trainings < 1 || r.Accuracy == nil || r.Arrived != 400 {
		t.Errorf("%+v, %v, of %s", r, err, out.String())
	}
}
