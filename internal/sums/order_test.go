package sums

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestAPartIsHandedOnBeforeTheWhole: of four, one whose part has all added hands the half that it has then to the next partner only
// once the first has its part.
func TestAPartIsHandedOnBeforeTheWhole(t *testing.T) {
	m := New("a", Times{})
	m.View(0, []ID{"l", "a", "b", "c", "d"})
	m.Call(0, Call{Name: "x", Op: Moved, Length: 1 << 10, Rounds: true, Timeout: time.Second})
	m.Receive(0, "l", wire.Sum{Kind: wire.SumPlace, Name: "x", Attempt: 7, Size: 4, Length: uint64(OneStripe), Partners: []string{"b", "c"}}) // ranks 1 and 2
	var moving *Moving
	sent := map[ID]int{}
	look := func() {
		for _, o := range m.Outcomes() {
			switch {
			case o.Moving != nil:
				moving = o.Moving
			case o.Chunk != nil && !o.Chunk.Add:
				sent[o.To]++
			}
		}
	}
	look()
	moving.Loaded(0, 0)
	take := func(from ID, c Chunk) {
		if !moving.Accept(0, from, c) {
			t.Fatalf("%+v of %s is not taken", c, from)
		}
		moving.Took(0, from, c)
	}
	moving.Gave(0, "c", Chunk{Part: 1, Parts: 2, Add: true})
	take("c", Chunk{Part: 0, Parts: 2, Add: true})
	moving.Gave(0, "b", Chunk{Part: 1, Parts: 4, Add: true})
	take("b", Chunk{Part: 0, Parts: 4, Add: true})
	take("b", Chunk{Part: 1, Parts: 4})
	if look(); sent["b"] != 1 || sent["c"] != 0 {
		t.Errorf("%d to b and %d to c before b has its own", sent["b"], sent["c"])
	}
	moving.Gave(0, "b", Chunk{Part: 0, Parts: 4})
	if look(); sent["c"] != 1 {
		t.Errorf("%d to c", sent["c"])
	}
}
