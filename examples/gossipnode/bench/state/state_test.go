package state

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli/clitest"
)

// TestState shows that every figure is there, and is one that such a measurement
// can have.
func TestState(t *testing.T) {
	var out, logged bytes.Buffer
	cmd := clitest.Command(t, 3*time.Minute, "state", "--parameters", "5000", "--slice", "64", "--rounds", "3", "--json")
	cmd.Stdout, cmd.Stderr = &out, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &logged)
	}
	var r stateResult
	clitest.OneLine(t, out.Bytes(), &r)
	if r.Parameters != 5000 || r.Donors != 2 || r.Rounds != 3 || r.Slices != 79 || r.DonorsUsed < 1 || r.DonorsUsed > 2 ||
		!(r.Seconds > 0) || !(r.RawLibp2pSeconds > 0) || !(r.RatioToRawLibp2p > 0) || r.RatioWorst < r.RatioToRawLibp2p || r.JoinSeconds < r.Seconds {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(logged.String(), "times as long as its bytes through libp2p") {
		t.Errorf("no table on standard error:\n%s", &logged)
	}
}

func TestStateRefusesWrongUse(t *testing.T) {
	for _, args := range [][]string{{"--donors", "0"}, {"--donors", "9"}, {"--rounds", "1"}, {"--slice", "100000"}, {"extra"}} {
		cmd := clitest.Command(t, 3*time.Minute, append([]string{"state"}, args...)...)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != cli.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}
