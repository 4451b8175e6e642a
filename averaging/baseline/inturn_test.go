package baseline

import (
	"testing"

	"pgregory.net/rapid"
)

// TestInTurn: in each round the shares add up to the whole, and over n rounds each peer has had the same.
func TestInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, n, round := rapid.IntRange(1, 1000).Draw(t, "total"), rapid.IntRange(1, 40).Draw(t, "peers"), rapid.Uint64Range(0, 1<<40).Draw(t, "round")
		want := max(total, n)
		each := make([]int, n)
		for k := range n {
			sum := 0
			for i := range n {
				share := inTurn(total, i, n, round+uint64(k))
				if share < want/n || share > (want+n-1)/n {
					t.Fatalf("a share of %d of %d among %d", share, want, n)
				}
				sum += share
				each[i] += share
			}
			if sum != want {
				t.Fatalf("round %d: %d in all, want %d", k, sum, want)
			}
		}
		for i, all := range each {
			if all != want {
				t.Fatalf("peer %d has %d in %d rounds, want %d", i, all, n, want)
			}
		}
	})
}
