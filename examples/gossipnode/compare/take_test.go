package compare

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestCompareGivesRacersWhatIsTheirs: what only some strategies know does not keep the
// others from racing.
func TestCompareGivesRacersWhatIsTheirs(t *testing.T) {
	code, _, text := try(append([]string{"compare"}, small(t, "--peers", "4", "--strategies", "adpsgd,allreduce,ps-dssp", "--server", "2",
		"--staleness", "2", "--staleness-max", "4", "--balance", "--every", "4")...)...)
	if code != cli.ExitDone {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func TestCompareServerUsage(t *testing.T) {
	for line, want := range map[string]string{
		"compare --strategies adpsgd,dpsgd --server 1":   "none of them is in --strategies",
		"compare --strategies adpsgd,ps-bsp --server 99": "--server 99: want 0 to 15",
		"compare --strategies ps-dssp --staleness-max 1": "--staleness-max 1: want at least --staleness",
		"compare --strategies ps-ssp --staleness -1":     "--staleness -1: want 0 to",
	} {
		code, _, text := try(strings.Fields(line)...)
		if code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
}
