package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestAModelCutIntoStages: four processes train two stages of a model, in pairs or by rounds. One of them is killed on the way, and one
// comes. All that end have the whole model, which has learned.
func TestAModelCutIntoStages(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{settings.StrategyADPSGD, settings.StrategyAllReduce} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel() // mostly it waits, for the death to be noticed
			cutIntoStages(t, strategy)
		})
	}
}

func cutIntoStages(t *testing.T, strategy string) {
	data := clitest.Pictures(t, 400, 200)
	args := []string{"run", "--dataset", "mnist", "--data", data, "--model", "mlp", "--stages", "2", "--strategy", strategy, "--activations", "bf16", "--batch", "16", "--lr", "0.02", "--steps", "300",
		"--step-time", "10ms", "--min-peers", "4", "--listen", settings.Loopback, "--json"}
	var all []*exec.Cmd
	var out, logs []*sharedBuffer
	start := func(more ...string) {
		cmd := command(t, append(args, more...)...)
		o, l := new(sharedBuffer), new(sharedBuffer)
		cmd.Stdout, cmd.Stderr = o, l
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all, out, logs = append(all, cmd), append(out, o), append(logs, l)
	}
	start()
	join := joinAddress(t, logs[0])
	for range 3 {
		start("--join", join)
	}
	clitest.Eventually(t, "all train", func() bool {
		for _, l := range logs {
			if !strings.Contains(l.String(), "training stage ") || !strings.Contains(l.String(), "  exchanges ") {
				return false
			}
		}
		return true
	})
	stage := func(i int) string {
		_, after, _ := strings.Cut(logs[i].String(), "training stage ")
		return after[:len("1 of 2")]
	}
	taken := map[string]int{}
	for i := range all {
		taken[stage(i)]++
	}
	if taken["1 of 2"] != 2 || taken["2 of 2"] != 2 {
		t.Errorf("stages are taken by %v", taken)
	}
	if err := all[2].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "the others know", func() bool { return strings.Contains(logs[0].String(), "is gone without leaving") })
	start("--join", join)
	for i, cmd := range all {
		if err := cmd.Wait(); (err != nil) != (i == 2) {
			t.Errorf("process %d ended with %v", i, err)
		}
	}
	for i, l := range logs {
		if t.Failed() {
			t.Logf("process %d:\n%s", i, l)
		}
	}
	for i, o := range out {
		if i != 2 {
			checkLearned(t, lastLine(t, o.String()))
		}
	}
}

// TestStagesGoOnFromCheckpoints: each peer goes on with the stage of its own checkpoint, and those of all stages are exported
// as one model.
func TestStagesGoOnFromCheckpoints(t *testing.T) {
	data, folder := clitest.Pictures(t, 200, 50), t.TempDir()
	saved := func(peer string) string { return filepath.Join(folder, "checkpoints", peer) }
	for life, steps := range []string{"20", "40"} {
		var out, logs sharedBuffer
		cmd := command(t, localArgs(data, "--model", "mlp", "--peers", "2", "--stages", "2", "--in-process", "--steps", steps, "--checkpoint", filepath.Join(folder, "checkpoints"))...)
		cmd.Stdout, cmd.Stderr = &out, &logs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, &logs)
		}
		if n := strings.Count(logs.String(), "resuming from a checkpoint"); n != 2*life {
			t.Errorf("life %d: %d peers went on\n%s", life, n, &logs)
		}
		if r := lastLine(t, out.String()); r.Steps < 40*uint64(life+1) {
			t.Errorf("life %d ended at step %d", life, r.Steps)
		}
	}
	whole := filepath.Join(folder, "whole.safetensors")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all":        {[]string{saved("peer-0"), saved("peer-1")}, "4 tensors"},
		"one":        {[]string{saved("peer-0")}, "trained in 2 stages, and 1 are given"},
		"one, twice": {[]string{saved("peer-0"), saved("peer-0")}, "give one checkpoint of each stage"},
	} {
		said, err := command(t, append([]string{"export", "--force", "--out", whole}, c.args...)...).CombinedOutput()
		if (err == nil) != (name == "all") || !strings.Contains(string(said), c.want) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}

// TestEndsStayWithTheData: two processes have data and both ends of a model, and one without data the stage between. Those with data
// have the whole model, which has learned.
func TestEndsStayWithTheData(t *testing.T) {
	data := clitest.Pictures(t, 400, 200)
	var all []*exec.Cmd
	var out, logs []*sharedBuffer
	join := ""
	for _, own := range [][]string{{"--dataset", "mnist", "--data", data, "--model", "cnn", "--stages", "3", "--ends-stay", "--batch", "16", "--lr", "0.02", "--steps", "100", "--min-peers", "3"}, {"--data", data}, {"--train-only"}} {
		args := append([]string{"run", "--listen", settings.Loopback, "--step-time", "10ms", "--json"}, own...)
		if join != "" {
			args = append(args, "--join", join)
		}
		cmd := command(t, args...)
		o, l := new(sharedBuffer), new(sharedBuffer)
		cmd.Stdout, cmd.Stderr = o, l
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if all, out, logs = append(all, cmd), append(out, o), append(logs, l); join == "" {
			join = joinAddress(t, l)
		}
	}
	for i, cmd := range slices.Backward(all) { // without the last the others wait for ever
		want := []string{"which stay here", "which stay here", "training stage 2 of 3"}[i]
		if err := cmd.Wait(); err != nil || !strings.Contains(logs[i].String(), want) {
			t.Fatalf("process %d ended with %v, want %q\n%s", i, err, want, logs[i])
		}
	}
	for _, o := range out[:2] {
		checkLearned(t, lastLine(t, o.String()))
	}
	if said := out[2].String(); !strings.Contains(said, `"test_accuracy":{"mean":null`) {
		t.Errorf("a peer without data knows an accuracy: %s", said)
	}
}
