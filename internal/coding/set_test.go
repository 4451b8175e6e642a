package coding

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSetsAreLimitedToTheFirst: what is left is as many of the lowest blocks as there may be.
func TestSetsAreLimitedToTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := Set(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "set"))
		most := rapid.IntRange(-1, 70).Draw(t, "most")
		after := append(Set(nil), before...)
		after.Limit(most)
		for i, left := 0, most; i < 8*len(before); i++ {
			if want := before.Has(i) && left > 0; after.Has(i) != want {
				t.Fatalf("%x limited to %d is %x", before, most, after)
			}
			if before.Has(i) {
				left--
			}
		}
	})
}
