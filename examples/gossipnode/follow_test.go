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

	"github.com/seed-97356399/murmuration/examples/gossipnode/arrivals"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
)

// TestRunFollows: a process begins with the first whole file of rows, names those that are not, trains, and ends with a result when
// it is asked to.
func TestRunFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "a,b,big\n" + rowsOf(0, 400)
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

// rowsOf is lines of a table of rows from, to before to.
func rowsOf(from, to int) (text string) {
	for i := from; i < to; i++ {
		text += fmt.Sprintf("%d,%d,%v\n", i%20, i%7, i%20 > 9)
	}
	return text
}

// newestLedger is what the newest checkpoint in a folder tells of a file: the rows read, and those that no training had seen.
func newestLedger(dir, name string) (rows, waiting int) {
	names, _ := checkpoint.Folder{Dir: dir}.Names()
	if len(names) == 0 {
		return 0, 0
	}
	file, err := checkpoint.Open(filepath.Join(dir, names[len(names)-1]))
	if err != nil {
		return 0, 0
	}
	var ledger struct {
		Files map[string]struct {
			Rows    int
			Waiting [][2]int
		}
	}
	_ = json.Unmarshal([]byte(file.Metadata[arrivals.LedgerKey]), &ledger)
	for _, s := range ledger.Files[name].Waiting {
		waiting += s[1] - s[0]
	}
	return ledger.Files[name].Rows, waiting
}

// TestKilledFollowerReadsOn: what one life has trained on, by its checkpoint, and what has come to the next after kill -9, is each
// row once.
func TestKilledFollowerReadsOn(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begun := "a,b,big\n" + rowsOf(0, 400)
	write("a.csv", begun)
	args := []string{"run", "--follow", dir, "--dataset", "csv", "--target", "big", "--policy", "best-effort", "--listen", settings.Loopback,
		"--checkpoint", state, "--checkpoint-every", "1s", "--json"}
	killed := command(t, args...)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var waiting int
	clitest.Eventually(t, "a checkpoint has a training", func() (trained bool) {
		rows, left := newestLedger(state, "a.csv")
		waiting, trained = left, rows == 400 && left < 400
		return trained
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	_, waiting = newestLedger(state, "a.csv")
	write("a.csv", begun+rowsOf(400, 500))
	write("b.csv", "a,b,big\n"+rowsOf(0, 50))
	cmd := command(t, args...)
	var out bytes.Buffer
	logs := new(sharedBuffer)
	cmd.Stdout, cmd.Stderr = &out, logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "all that is new has come", func() bool {
		return strings.Contains(logs.String(), fmt.Sprintf("a.csv: %d rows have come", waiting+100)) && strings.Contains(logs.String(), "b.csv: 50 rows have come")
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("asked to end: %v, %s", err, logs)
	}
	var r struct {
		Arrived int `json:"arrived_rows"`
		Kept    int `json:"kept_rows"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(out.Bytes()), &r); err != nil || 400-waiting+r.Arrived != 550 || r.Kept < 400-waiting {
		t.Errorf("%d rows by one life, and %+v by the next, %v", 400-waiting, r, err)
	}
}
