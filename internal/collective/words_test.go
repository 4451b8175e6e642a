package collective

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/topology"
)

const lastMark = 1<<markBits - 1

// Every place that there can be survives its word, the largest too.
func TestPlacesFitInWords(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, p Place) {
		w := p.Word(7)
		if got, ok := PlaceOf(w); !ok || got != p || w.Round != 7 {
			t.Errorf("%+v is told as %+v, ok %t", p, got, ok)
		}
		if w.Value != math.Trunc(w.Value) || w.Value >= 1<<53 {
			t.Errorf("%+v: a value of %g", p, w.Value)
		}
	}
	check(t, Place{Rank: topology.MaxMembers - 1, Size: topology.MaxMembers, Next: lastMark, Previous: lastMark})
	check(t, Place{Rank: 0, Size: 1})
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(1, topology.MaxMembers).Draw(r, "size")
		check(r, Place{
			Rank: rapid.IntRange(0, size-1).Draw(r, "rank"), Size: size,
			Next: rapid.Uint64Range(0, lastMark).Draw(r, "next"), Previous: rapid.Uint64Range(0, lastMark).Draw(r, "previous"),
		})
	})
}

// A word of anybody's making is a place that there is, or none.
func TestPlacesThatCannotBe(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := Word{View: rapid.Uint64().Draw(r, "view"), Value: rapid.Float64().Draw(r, "value")}
		if rapid.Bool().Draw(r, "whole") {
			w.Value = float64(rapid.Uint64().Draw(r, "bits"))
		}
		p, ok := PlaceOf(w)
		if ok && (p.Rank < 0 || p.Rank >= p.Size || p.Size > topology.MaxMembers || p.Next > lastMark || p.Previous > lastMark) {
			r.Errorf("%+v is the place %+v", w, p)
		}
	})
	for _, value := range []float64{0, -1, math.NaN(), math.Inf(1), 1 << 53, 3<<rankBits | 3, 1} {
		if p, ok := PlaceOf(Word{Value: value}); ok {
			t.Errorf("%g is the place %+v", value, p)
		}
	}
}
