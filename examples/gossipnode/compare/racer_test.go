package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
)

// TestARacerHasFlagsOfItsOwn: what stands after the codec is set for this racer only.
func TestARacerHasFlagsOfItsOwn(t *testing.T) {
	s := compareSettings{Strategies: "adpsgd, adpsgd:lattice6+4 quantized=0@0;100@0.3 every=16 burst=4, diloco:int8 lr=0.02 every=8"}
	s.Codec, s.Quantized, s.Every = "raw", "100", "2"
	racers, err := s.racers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range racers {
		one := s.Settings
		if err := r.set(&one); err != nil {
			t.Fatal(err)
		}
		given := []string{one.Strategy, one.Codec, one.Quantized, one.Every}
		if one.Burst == 4 && one.LR == 0 || one.Burst == 0 && (one.LR == 0.02) == (one.Strategy == "diloco") {
			got = append(got, strings.Join(given, " "))
		}
	}
	if want := []string{"adpsgd raw 100 2", "adpsgd lattice6+4 0@0,100@0.3 16", "diloco int8 100 8"}; !slices.Equal(got, want) {
		t.Errorf("racers %q, want %q", got, want)
	}
	for line, want := range map[string]string{
		"adpsgd listen=x": "--listen is no flag of training or exchanges",
		"adpsgd lr=fast":  "invalid argument",
		"adpsgd burst=-1": "--burst -1: want 0 to",
	} {
		if code, _, text := try("compare", "--strategies", line); code != cli.ExitUsage || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, no %q in\n%s", line, code, want, text)
		}
	}
}
