package stages

import (
	"testing"

	"github.com/seed-97356399/murmuration/topology"
)

// TestOneThatLiesAboutItsRound moves nobody: of a stage most are believed, and of as many those that agree with the other stages; what
// is said to be far behind all others is not waited for.
func TestOneThatLiesAboutItsRound(t *testing.T) {
	for name, lie := range map[string]Report{
		"far ahead":             {In: true, Round: 1 << 60, Version: 1 << 61},
		"new parameters":        {In: true, Round: 3, Version: 1 << 61},
		"the newest there are":  {In: true, Round: 3, Version: ^uint64(0)},
		"far behind, and newer": {In: true, Round: 0, Version: 7},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlockOf(t, map[topology.PeerID]int{"a": 0, "b": 0, "c": 1, "d": 1})
			for round := range 3 {
				f.all(uint64(round+1), round, "a", "b", "c", "d")
				f.rest("a", "b", "c", "d")
				f.over("a", "b", "c", "d")
			}
			for _, to := range []topology.PeerID{"a", "c", "d"} {
				f.of[to].Received(f.now, "b", lie)
			}
			for _, id := range []topology.PeerID{"a", "c", "d"} {
				f.of[id].Begin(f.now, 4)
				if round, makes, entered := f.of[id].Enter(f.now); round != 3 || !makes || !entered {
					t.Errorf("%s is in round %d: %t", id, round, entered)
				}
			}
			f.comes("e", 0) // has two fellows, one of which lies
			f.talk()
			f.of["e"].Received(f.now, "b", lie)
			f.of["e"].Begin(f.now, 4)
			if round, _, entered := f.of["e"].Enter(f.now); round != 3 || !entered {
				t.Errorf("a newcomer is in round %d: %t", round, entered)
			}
			f.goes("c")
			f.goes("d")
			f.comes("g", 1) // alone in its stage
			f.talk()
			f.of["g"].Received(f.now, "b", lie)
			f.of["g"].Begin(f.now, 9)
			if round, _, entered := f.of["g"].Enter(f.now); round != 3 || !entered {
				t.Errorf("one alone in its stage is in round %d: %t", round, entered)
			}
		})
	}
}
