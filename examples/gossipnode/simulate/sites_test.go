package simulate

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestSimulateSites: who tells the overlay where peers are has less go across.
func TestSimulateSites(t *testing.T) {
	args := small(t, "--peers", "8", "--sites", "2", "--across", "0.5,60", "--epochs", "20")
	_, told := simulateOnce(t, args...)
	_, blind := simulateOnce(t, append(args, "--blind")...)
	if told.BytesAcross == 0 || 2*told.BytesAcross > blind.BytesAcross || blind.BytesAcross > blind.BytesSent {
		t.Errorf("%d bytes of %d went across, blind %d of %d", told.BytesAcross, told.BytesSent, blind.BytesAcross, blind.BytesSent)
	}
	if last := blind.Curve[len(blind.Curve)-1].BytesAcross; last <= 0 || uint64(last) > blind.BytesAcross {
		t.Errorf("the curve has %d bytes across, of %d", last, blind.BytesAcross)
	}
	if text := told.String(); !strings.Contains(text, "from one site to another") {
		t.Errorf("no word of sites in %s", text)
	}
	if line, r := simulateOnce(t, small(t, "--peers", "4")...); r.BytesAcross > 0 || strings.Contains(line, "across") {
		t.Errorf("without sites: %s", line)
	}
}

func TestSitesUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--sites 0":                      "--sites 0: want 1 to",
		"--across 20,60":                 "give --sites 2",
		"--blind":                        "give --sites 2",
		"--sites 2 --across far":         "--across \"far\": want MBPS,MS",
		"--sites 2 --record world.jsonl": "leave out --record and --replay",
	} {
		if code, _, text := try(append([]string{"simulate"}, strings.Fields(args)...)...); code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", args, code, want, text)
		}
	}
}
