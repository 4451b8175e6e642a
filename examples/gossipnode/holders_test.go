package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
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

// TestAHolderSaysWhatItIs: it serves metrics with the rows that it gives, and whoever ends it is told what that costs.
func TestAHolderSaysWhatItIs(t *testing.T) {
	t.Parallel()
	address := fmt.Sprint("127.0.0.1:", freePorts(t, 1))
	cmd := command(t, "run", "--hold", "--dataset", "mnist", "--data", clitest.Pictures(t, 400, 200), "--listen", settings.Loopback, "--metrics", address)
	var logged sharedBuffer
	cmd.Stderr = &logged
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
	if text := logged.String(); !strings.Contains(text, "get no more of what this one held") || strings.Contains(text, "loss") {
		t.Errorf("%s", text)
	}
}
