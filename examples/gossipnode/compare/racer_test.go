package compare

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/simulate"
)

// TestARacerHasAShareOfItsOwn: what stands after the codec is the racer's --quantized.
func TestARacerHasAShareOfItsOwn(t *testing.T) {
	s := compareSettings{Strategies: "adpsgd,adpsgd:lattice6+4/30,adpsgd:lattice6+4/0@0;100@0.3"}
	s.Codec = "raw"
	racers, err := s.racers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range racers {
		one := simulate.Settings{}
		one.Quantized = "100"
		r.set(&one)
		got = append(got, one.Codec+" "+one.Quantized)
	}
	if len(got) != 3 || got[0] != "raw 100" || got[1] != "lattice6+4 30" || got[2] != "lattice6+4 0@0,100@0.3" {
		t.Errorf("racers of %q", got)
	}
}
