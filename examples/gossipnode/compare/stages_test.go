package compare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestCompareRacesStages: a racer may have a number of peers of its own, and stages; the table tells how busy these are.
func TestCompareRacesStages(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "race.svg")
	args := small(t, "--model", "mlp", "--peers", "4", "--points", "3", "--step-time", "100ms", "--plot", picture, "--strategies", "alone peers=1, allreduce, adpsgd stages=2")
	code, out, stderr := try(append([]string{"compare", "--json"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var all struct{ Races []race }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	one, whole, staged := all.Races[0].Results[0], all.Races[0].Results[1], all.Races[0].Results[2]
	if one.Peers != 1 || whole.Peers != 4 || len(whole.Stages) != 0 || len(staged.Stages) != 2 {
		t.Errorf("%s", out)
	}
	for _, e := range []entrant{whole, staged} { // of two stages of two members, the slower one has nearly all the work of an mlp
		if times := one.SecondsPerEpoch / e.SecondsPerEpoch; times < 1.5 || times > 4.2 {
			t.Errorf("%s is %.2f times as fast as one peer", e.Name, times)
		}
	}
	if !strings.Contains(stderr, "busy, %") {
		t.Errorf("no column for how busy stages are:\n%s", stderr)
	}
	drawn, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(drawn), "passes over the data") {
		t.Errorf("no axis of passes: %v", err)
	}
	code, _, stderr = try(append([]string{"compare"}, small(t, "--strategies", "alone peers=many")...)...)
	if code != cli.ExitUsage || !strings.Contains(stderr, "many") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
