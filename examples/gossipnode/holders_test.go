package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestRowsTravelBetweenProcesses: peers that hold no data learn from those that do, by either way of sharing an epoch and by
// hops, and each row that was handed out is counted.
func TestRowsTravelBetweenProcesses(t *testing.T) {
	for _, how := range []string{"--holders 1", "--holders 2 --hand-out round-robin", "--holders 2 --hops 2"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var out, logged bytes.Buffer
			cmd := command(t, localArgs(clitest.Pictures(t, 400, 200), append(strings.Fields(how), "--peers", "3", "--epochs", "8", "--step-time", "2ms")...)...)
			cmd.Stdout, cmd.Stderr = &out, &logged
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &logged)
			}
			r := lastLine(t, out.String())
			if r.Travelled == nil || r.HandedOut < 8*400 || r.HandedOut != r.TrainedSamples+r.LostSamples || r.BytesSent < r.HandedOut*28*28 {
				t.Errorf("%s", &out)
			}
			if !(r.TestAccuracy.Min > 0.5) || r.Peers != 3 || r.PeersLost != 0 {
				t.Errorf("%s", &out)
			}
		})
	}
}

// TestAPeerHoldsAndTrains: one peer trains on its data, and gives it to another that has none.
func TestAPeerHoldsAndTrains(t *testing.T) {
	t.Parallel()
	address := fmt.Sprint("127.0.0.1:", freePorts(t, 1))
	var results [2]result.Result
	var both sync.WaitGroup
	for i, args := range [][]string{
		{"--hold-and-train", "--data", clitest.Pictures(t, 400, 200), "--listen", address, "--steps", "60", "--hand-out", "round-robin"},
		{"--train-only", "--join", address, "--listen", settings.Loopback},
	} {
		both.Go(func() {
			var out, logged bytes.Buffer
			cmd := command(t, append([]string{"run", "--dataset", "mnist", "--min-peers", "2", "--json", "--step-time", "2ms"}, args...)...)
			cmd.Stdout, cmd.Stderr = &out, &logged
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, &logged)
				return
			}
			results[i] = lastLine(t, out.String())
		})
	}
	both.Wait()
	for _, r := range results {
		if r.Steps == 0 || r.Travelled == nil || r.HandedOut == 0 || r.HandedOut != r.TrainedSamples+r.LostSamples || !(r.TestAccuracy.Min > 0.5) {
			t.Errorf("%+v", r)
		}
	}
}

// TestFlagsThatMoveNoRows: what would have no effect is refused, with what to do.
func TestFlagsThatMoveNoRows(t *testing.T) {
	for args, says := range map[string]string{
		"run --hops 2":                                             "--train-only",
		"run --hand-out speed":                                     "--hold-and-train",
		"run --hold --hops 2":                                      "--train-only",
		"run --train-only --hand-out speed":                        "--hold",
		"local --hops 2":                                           "--holders",
		"local --hand-out speed":                                   "--holders",
		"run --train-only --data x --dataset mnist":                "leave out either",
		"run --train-only --part 0/2":                              "--train-only",
		"run --hold --train-only":                                  "--hold-and-train",
		"run --hold-and-train --hold":                              "leave out",
		"run --hold --normalize flock --dataset mnist --data x":    "MEAN/SCALE",
		"run --train-only --dataset csv --target y --share-rows 9": "leave it out",
	} {
		if code, _, logged := try(strings.Fields(args)...); code != cli.ExitUsage || !strings.Contains(logged, says) {
			t.Errorf("%s: exit code %d: %s", args, code, logged)
		}
	}
}

// TestAHolderSaysWhatItIs: it serves metrics with the rows that it gives, and whoever ends it is told what it gave, and what that costs.
func TestAHolderSaysWhatItIs(t *testing.T) {
	t.Parallel()
	address := fmt.Sprint("127.0.0.1:", freePorts(t, 1))
	cmd := command(t, "run", "--hold", "--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--listen", settings.Loopback, "--metrics", address)
	var out, logged sharedBuffer
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clitest.Eventually(t, "the holder's metrics have rows", func() bool {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return bytes.Contains(text, []byte(`rows_total{fate="handed_out",side="held"} 0`))
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if text := out.String(); !strings.Contains(text, "Rows handed out: 0") {
		t.Errorf("%s", text)
	}
	if text := logged.String(); !strings.Contains(text, "get no more of what this one held") || strings.Contains(text, "loss") {
		t.Errorf("%s", text)
	}
}
