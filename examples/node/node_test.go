// Package node_test runs the trainer in JavaScript, which shows that any language can take part: it
// needs Node, and nothing else.
package node_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/bridge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

func TestMain(m *testing.M) { clitest.Only(bridge.Command).Main(m) }

// TestTwoTrainersInAnotherLanguage learn one line from points of their own, and end with one model.
func TestTwoTrainersInAnotherLanguage(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("there is no node here: %v", err)
	}
	temporary := t.TempDir()
	const patience = time.Minute
	start := func(seed int, join ...string) <-chan string {
		cmd := clitest.Command(t, patience, "train.mjs", "--bridge", os.Args[0], "--seed", strconv.Itoa(seed), "--members", "2")
		cmd.Path, cmd.Args[0] = node, node
		cmd.Args = append(cmd.Args, join...)
		cmd.Env, cmd.Stderr = append(cmd.Env, "TMPDIR="+temporary), t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() })
		return clitest.ScanLines(t, out)
	}
	var first struct{ Address string }
	one := start(1)
	if err := json.Unmarshal([]byte(<-one), &first); err != nil || first.Address == "" {
		t.Fatalf("the first tells no address: %v", err)
	}
	two := start(2, "--join", first.Address)
	<-two
	var models [][]float64
	for _, lines := range []<-chan string{one, two} {
		var result struct {
			Accuracy float64
			Model    []float64
		}
		if err := json.Unmarshal([]byte(<-lines), &result); err != nil || result.Accuracy < 0.95 {
			t.Errorf("accuracy %v, %v", result.Accuracy, err)
		}
		models = append(models, result.Model)
	}
	if !t.Failed() && !slices.Equal(models[0], models[1]) {
		t.Errorf("not one model of both: %v and %v", models[0], models[1])
	}
}
