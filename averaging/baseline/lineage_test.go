package baseline

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// Each claim to the seat begins a lineage of its own, or models that differ would be taken
// for the same at equal rounds.
func TestClaimsBeginLineagesOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := seat{self: topology.PeerID(rapid.String().Draw(r, "self")), lineage: rapid.Uint64().Draw(r, "lineage")}
		now := time.Duration(rapid.Int64Min(0).Draw(r, "now"))
		seen := map[uint64]uint64{}
		for count := range uint64(50) {
			lineage := s.next(count, now)
			if former, twice := seen[lineage]; twice || lineage == 0 {
				r.Fatalf("claims %d and %d begin the lineage %d", former, count, lineage)
			}
			seen[lineage] = count
		}
	})
}

// A peer that dies and comes back claims a lineage of its new life: one that has the model of
// the former life, at a round that both have reached, is given the new one's.
func TestLivesBeginLineagesOfTheirOwn(t *testing.T) {
	_, former := drivenLeader(t, true)
	m, err := NewAllReduce(Config{Self: "b"})
	if err != nil {
		t.Fatal(err)
	}
	d := &driven{t: t, machine: m, now: time.Millisecond} // an election takes never quite the same time
	d.view("b", "a")
	d.handle(averaging.Event{Kind: averaging.GradientDone, Samples: 1, Initial: true})
	d.told("a", word(wordNone, 0, 0, 0))
	if !m.leads() || !former.leads() {
		t.Fatal("b does not lead in both of its lives")
	}
	var seated, given bool
	for _, a := range d.told("a", word(wordStatus, 0, former.lineage, packed(0, uint64(ready), statusBits))) {
		seated = seated || a.Kind == averaging.Tell && a.Word.Kind == wordPlace
		given = given || a.Kind == averaging.Send && a.Transfer.From == averaging.Parameters
	}
	if seated || !given {
		t.Errorf("a member with a model of the former life: seated %t, given the parameters %t", seated, given)
	}
}
