package stats_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestRowsAddUp: at each moment what was handed out is trained on, lost or outstanding, at one holder and over several.
func TestRowsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var holders [3]stats.Rows
		var out [3]int
		var handed, trained, lost, returned uint64
		for range rapid.IntRange(0, 50).Draw(t, "events") {
			at := rapid.IntRange(0, len(holders)-1).Draw(t, "holder")
			if n := rapid.IntRange(0, 100).Draw(t, "rows"); rapid.Bool().Draw(t, "handed out") {
				holders[at].Out(n)
				out[at] += n
				handed += uint64(n)
				continue
			}
			a := rapid.IntRange(0, out[at]).Draw(t, "trained")
			b := rapid.IntRange(0, out[at]-a).Draw(t, "lost")
			c := rapid.IntRange(0, out[at]-a-b).Draw(t, "returned")
			holders[at].Back(a, b, c)
			out[at] -= a + b + c
			trained, lost, returned = trained+uint64(a), lost+uint64(b), returned+uint64(c)
		}
		var all stats.Rows
		for i, r := range holders {
			if r.Outstanding() != uint64(out[i]) {
				t.Fatalf("holder %d, of which %d rows are out: %+v", i, out[i], r)
			}
			all.Add(stats.Rows{}, r)
		}
		if want := (stats.Rows{HandedOut: handed - returned, Trained: trained, Lost: lost, Returned: returned}); all != want {
			t.Fatalf("together %+v, want %+v", all, want)
		}
	})
}
