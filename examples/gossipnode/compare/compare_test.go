package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
)

// TestCompareRaces races two strategies in three worlds, and draws them.
func TestCompareRaces(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "race.png")
	args := small(t, "--strategies", "adpsgd,adpsgd:lattice6+4,alone", "--suite", "homogeneous,slow-10,churn", "--peers", "8", "--target", "0.3", "--plot", picture)
	code, out, stderr := try(append([]string{"compare", "--json"}, args...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var all struct {
		Peers int
		Races []race
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Races) != 3 || len(all.Races[0].Results) != 3 || all.Races[1].World != "slow-10" {
		t.Fatalf("races: %s", out)
	}
	for _, r := range all.Races {
		for _, e := range r.Results {
			if (e.Strategy == settings.StrategyAlone) != (e.Exchanges == 0) || e.Seconds <= 0 || len(e.Curve) != defaultComparePoints {
				t.Errorf("%s in %s: %+v", e.Name, r.World, e)
			}
			if (r.World == "churn") != (e.PeersLost == 2) {
				t.Errorf("%s in %s: %d of 8 lost", e.Name, r.World, e.PeersLost)
			}
		}
	}
	if even, slow := all.Races[0].Results[0], all.Races[1].Results[0]; slow.Seconds < even.Seconds || slow.Seconds > 1.3*even.Seconds {
		t.Errorf("adpsgd took %g s, with a straggler %g s", even.Seconds, slow.Seconds)
	}
	if raw, coded := all.Races[0].Results[0], all.Races[0].Results[1]; coded.BytesSent > raw.BytesSent/5 || coded.Codec != "lattice6+4" {
		t.Errorf("raw took %d bytes, %s %d", raw.BytesSent, coded.Codec, coded.BytesSent)
	}
	file, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if b := drawn.Bounds(); b.Dx() < 600 || b.Dy() < b.Dx()*3/4 {
		t.Errorf("three rows of two panels are %v", b)
	}
	if !strings.Contains(stderr, "× homogeneous") {
		t.Errorf("no table: %s", stderr)
	}
}

// TestCompareReplays races in a recorded world, of as many peers as that has.
func TestCompareReplays(t *testing.T) {
	recorded := filepath.Join(t.TempDir(), "world.jsonl")
	code, _, stderr := try(append([]string{"simulate"}, small(t, "--peers", "3", "--slow", "1=5", "--record", recorded)...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, out, stderr := try(append([]string{"compare", "--json"}, small(t, "--strategies", "ps-bsp,alone", "--replay", recorded)...)...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var all struct {
		Peers int
		Races []race
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	if all.Peers != 3 || all.Races[0].Results[0].Peers != 3 {
		t.Errorf("a recording of 3 peers is replayed with %d, and %d in its first race", all.Peers, all.Races[0].Results[0].Peers)
	}
	if bound, free := all.Races[0].Results[0], all.Races[0].Results[1]; bound.Seconds < 2*free.Seconds {
		t.Errorf("the recorded straggler: ps-bsp took %g s, alone %g s", bound.Seconds, free.Seconds)
	}
}

// TestCompareDrawsSVG prints the table where no JSON is asked for.
func TestCompareDrawsSVG(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "race.svg")
	code, out, stderr := try(append([]string{"compare"}, small(t, "--strategies", "adpsgd", "--peers", "4", "--plot", picture)...)...)
	if code != cli.ExitDone || !strings.Contains(out, "s/epoch") {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	text, err := os.ReadFile(picture)
	if err != nil || !bytes.Contains(text, []byte("<svg")) || !bytes.Contains(text, []byte("adpsgd")) {
		t.Errorf("%v: %.200s", err, text)
	}
	css, err := os.ReadFile("../dashboard/page/style.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">4 peers, ", "gossipnode compare ", "--strategies", ">homogeneous: the world", "Liberation Sans"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the drawing says nothing of %q", want)
		}
	}
	for _, c := range append(palette[:3:3], ink, quiet, edge) {
		r, g, b, _ := c.RGBA()
		if name := fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8); !bytes.Contains(css, []byte(name)) {
			t.Errorf("%s is no colour of the page", name)
		}
	}
	if bytes.Contains(text, []byte("--plot")) || !bytes.Contains(bytes.ToLower(text), []byte("stroke:#0b6bcb")) {
		t.Error("it names its own file, or its first line is of another colour")
	}
}

func TestCompareUsage(t *testing.T) {
	recorded := filepath.Join(t.TempDir(), "world.jsonl")
	if err := os.WriteFile(recorded, []byte(`{"world":1,"peers":3}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--suite wan,wan":                      "twice",
		"--suite homogeneous,slow-2 --peers 1": "at least 2 peers",
		"--suite slow-10 --replay " + recorded: "takes over from the recording",
		"--strategies best":                    "--strategies",
		"--strategies adpsgd:zip":              "--strategies",
		"--strategies adpsgd,adpsgd":           "twice",
		"--suite moon":                         "homogeneous",
		"--plot race.gif":                      ".png or .svg",
		"--slow 99=2":                          "--slow",
	} {
		code, _, stderr := try(append([]string{"compare"}, strings.Fields(args)...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("compare %s: exit code %d, %q, want %q in it", args, code, stderr, want)
		}
	}
}
