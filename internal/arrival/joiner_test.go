package arrival

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLowerMedian(t *testing.T) {
	for _, c := range []struct {
		values []uint64
		want   uint64
	}{
		{nil, 0}, {[]uint64{7}, 7}, {[]uint64{900, math.MaxUint64}, 900},
		{[]uint64{900, math.MaxUint64, 910}, 910}, {[]uint64{0, 900, 910}, 900}, {[]uint64{4, 1, 3, 2}, 2},
	} {
		if got := lowerMedian(slices.Clone(c.values)); got != c.want {
			t.Errorf("of %v: %d, want %d", c.values, got, c.want)
		}
	}
}

// TestOneLiarMovesNoMedian: among three words or more, what one says leaves the
// result within what the others say; of two, it can only lower it.
func TestOneLiarMovesNoMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest := rapid.SliceOfN(rapid.Uint64Range(1000, 1100), 1, 6).Draw(t, "honest")
		lie := rapid.Uint64().Draw(t, "lie")
		got := lowerMedian(append(slices.Clone(honest), lie))
		if got > slices.Max(honest) || len(honest) > 1 && got < slices.Min(honest) {
			t.Fatalf("%v and the lie %d give %d", honest, lie, got)
		}
	})
}

func TestWhichCheckpointIsNear(t *testing.T) {
	for _, c := range []struct {
		checkpoint, flock uint64
		want              bool
	}{{0, 0, false}, {0, 100, false}, {900, 1000, true}, {899, 1000, false}, {1000, 1000, true}, {1000, 0, true}, {1000, 900, true}, {1, math.MaxUint64, false}} {
		if got := (Checkpoint{FlockSteps: c.checkpoint}).near(c.flock); got != c.want {
			t.Errorf("a checkpoint at %d of %d steps: near is %v", c.checkpoint, c.flock, got)
		}
	}
}
