package main

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestSimulateServerIsWhoIsNamed: a named server that is lost ends the run, as nobody takes
// its place; if another is lost, or the peers elect who serves, it goes on.
func TestSimulateServerIsWhoIsNamed(t *testing.T) {
	args := small(t, "--peers", "4", "--strategy", "ps-asp", "--crash", "2@60ms")
	for server, lost := range map[string]bool{"2": true, "1": false, "": false} {
		line := append([]string{"simulate"}, args...)
		if server != "" {
			line = append(line, "--server", server)
		}
		code, _, text := try(line...)
		if lost != (code == cli.ExitFailed) || lost && !strings.Contains(text, "no server") {
			t.Errorf("--server %q: exit code %d\n%s", server, code, text)
		}
	}
}

func TestSimulateServerUsage(t *testing.T) {
	for line, want := range map[string]string{
		"simulate --server 1":                            "--server is for ps-bsp",
		"simulate --strategy ps-asp --server 16":         "--server 16: want 0 to 15",
		"compare --strategies adpsgd,dpsgd --server 1":   "none of them is in --strategies",
		"compare --strategies adpsgd,ps-bsp --server 99": "--server 99: want 0 to 15",
		"compare --strategies ps-dssp --staleness-max 1": "--staleness-max 1: want at least --staleness",
		"simulate --strategy adpsgd --balance":           "--balance scales a number of steps",
		"compare --strategies ps-ssp --staleness -1":     "--staleness -1: want 0 to",
	} {
		code, _, text := try(strings.Fields(line)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
}

// TestCompareGivesRacersWhatIsTheirs: what only some strategies know does not keep the
// others from racing.
func TestCompareGivesRacersWhatIsTheirs(t *testing.T) {
	code, _, text := try(append([]string{"compare"}, small(t, "--peers", "4", "--strategies", "adpsgd,allreduce,ps-dssp", "--server", "2",
		"--staleness", "2", "--staleness-max", "4", "--balance", "--every", "4")...)...)
	if code != cli.ExitDone {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestSimulateBalances: pictures that are shared out by speed make a flock with a slow
// peer faster.
func TestSimulateBalances(t *testing.T) {
	for _, strategy := range []string{strategyAllReduce, strategyBSP} {
		args := small(t, "--peers", "4", "--slow", "1=4", "--strategy", strategy)
		_, even := simulateOnce(t, args...)
		_, shared := simulateOnce(t, append(args, "--balance")...)
		t.Logf("%s: %.2f s, with --balance %.2f s", strategy, even.Seconds, shared.Seconds)
		if shared.Seconds > 0.75*even.Seconds {
			t.Errorf("%s: %.2f s, with --balance %.2f s", strategy, even.Seconds, shared.Seconds)
		}
	}
}
