package cli

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNearest shows that only what is alike is suggested.
func TestNearest(t *testing.T) {
	keys := []string{"lr", "batch", "min-peers", "min-peers-wait"}
	for word, want := range map[string]string{"bacth": "batch", "min_peers": "min-peers", "minpeer": "min-peers", "learning-rate": "", "x": "", "": "", "lrr": ""} {
		if got, ok := Nearest(word, keys); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q (%v), want %q", word, got, ok, want)
		}
	}
}

// TestEditDistance compares the distance with its recursive definition.
func TestEditDistance(t *testing.T) {
	var plain func(a, b string) int
	plain = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		change := plain(a[1:], b[1:])
		if a[0] != b[0] {
			change++
		}
		return min(change, plain(a[1:], b)+1, plain(a, b[1:])+1)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,6}")
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := editDistance(a, b), plain(a, b); got != want {
			t.Fatalf("distance %d, want %d", got, want)
		}
	})
}
