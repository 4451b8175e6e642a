package compare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestCompareSites races peers who tell where they are against those who do not.
func TestCompareSites(t *testing.T) {
	code, out, stderr := try(append([]string{"compare", "--json"},
		small(t, "--peers", "8", "--sites", "2", "--across", "0.5,60", "--epochs", "20", "--strategies", "adpsgd, adpsgd blind=true")...)...)
	var all struct{ Races []race }
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, stderr)
	}
	told, blind := all.Races[0].Results[0], all.Races[0].Results[1]
	if told.BytesAcross == 0 || 2*told.BytesAcross > blind.BytesAcross || !strings.Contains(stderr, "MB across") {
		t.Errorf("%d bytes across, blind %d:\n%s", told.BytesAcross, blind.BytesAcross, stderr)
	}
	if code, _, text := try("compare", "--sites", "2", "--strategies", "adpsgd blind=so"); code != cli.ExitUsage || !strings.Contains(text, "adpsgd blind=so") {
		t.Errorf("blind=so: exit code %d, %s", code, text)
	}
}
