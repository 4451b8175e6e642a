package simulate

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestSimulateServerIsLost: a run goes on without its server, be that the named one or the
// first of the flock, which peer 2 is, and without another peer.
func TestSimulateServerIsLost(t *testing.T) {
	args := small(t, "--peers", "4", "--strategy", "ps-asp", "--crash", "2@60ms")
	for _, server := range []string{"2", "1", ""} {
		line := append([]string{"simulate"}, args...)
		if server != "" {
			line = append(line, "--server", server)
		}
		code, _, text := try(line...)
		if code != cli.ExitDone {
			t.Errorf("--server %q: exit code %d\n%s", server, code, text)
		}
	}
}

func TestSimulateServerUsage(t *testing.T) {
	for line, want := range map[string]string{
		"simulate --server 1":                    "--server is for ps-bsp",
		"simulate --strategy ps-asp --server 16": "--server 16: want 0 to 15",
		"simulate --strategy adpsgd --balance":   "--balance scales a number of steps",
	} {
		code, _, text := try(strings.Fields(line)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
}

// TestSimulateBalances: pictures that are shared out by speed make a flock with a slow
// peer faster.
func TestSimulateBalances(t *testing.T) {
	for _, strategy := range []string{settings.StrategyAllReduce, settings.StrategyBSP} {
		args := small(t, "--peers", "4", "--slow", "1=4", "--strategy", strategy)
		_, even := simulateOnce(t, args...)
		_, shared := simulateOnce(t, append(args, "--balance")...)
		t.Logf("%s: %.2f s, with --balance %.2f s", strategy, even.Seconds, shared.Seconds)
		if shared.Seconds > 0.75*even.Seconds {
			t.Errorf("%s: %.2f s, with --balance %.2f s", strategy, even.Seconds, shared.Seconds)
		}
	}
}
