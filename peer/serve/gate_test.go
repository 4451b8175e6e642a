package serve

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

var unknown = math.NaN()

func TestGate(t *testing.T) {
	const margin = 0.125
	for _, c := range []struct {
		what    string
		checks  []Figures
		offered string // a letter for each check, - for none
		want    string
	}{
		{"the first is taken as it is", []Figures{{unknown, unknown, unknown}}, "a", "swapped a"},
		{"nothing to take", []Figures{{unknown, unknown, unknown}}, "-", "kept "},
		{"no worse", []Figures{{unknown, unknown, 1}, {1, unknown, 1}}, "ab", "swapped a, swapped b"},
		{"within the margin", []Figures{{unknown, unknown, 1}, {1, unknown, 1 - margin}}, "ab", "swapped a, swapped b"},
		{"worse", []Figures{{unknown, unknown, 1}, {1, unknown, 0.75}}, "ab", "swapped a, refused a"},
		{"cannot be measured", []Figures{{unknown, unknown, 1}, {1, unknown, unknown}}, "ab", "swapped a, refused a"},
		{"turns out to be worse", []Figures{{unknown, unknown, 1}, {1, unknown, 2}, {1, 1.25, unknown}}, "ab-", "swapped a, swapped b, rolled_back a"},
		{"a better one comes just then", []Figures{{unknown, unknown, 1}, {1, unknown, 2}, {1, 1.25, 1.25}}, "abc", "swapped a, swapped b, swapped c"},
		{"a worse one comes just then", []Figures{{unknown, unknown, 1}, {1, unknown, 2}, {1, 1.25, 0.5}}, "abc", "swapped a, swapped b, rolled_back a"},
		{"as good as before", []Figures{{unknown, unknown, 1}, {1, unknown, 1}, {1, 1.125, unknown}}, "ab-", "swapped a, swapped b, kept b"},
		{"served cannot be measured any more", []Figures{{unknown, unknown, 1}, {1, unknown, 1}, {unknown, 0.5, unknown}}, "ab-", "swapped a, swapped b, rolled_back a"},
		{"nothing can be measured", []Figures{{unknown, unknown, 1}, {1, unknown, 1}, {unknown, unknown, unknown}}, "abc", "swapped a, swapped b, refused b"},
		{"no second way back", []Figures{{unknown, unknown, 1}, {1, unknown, 1}, {0, 1, unknown}, {0, unknown, unknown}}, "ab--", "swapped a, swapped b, rolled_back a, kept a"},
		{"the margin does not add up", []Figures{{unknown, unknown, 1}, {1, unknown, 0.875}, {0.875, 1, 0.75}}, "abc", "swapped a, swapped b, refused b"},
	} {
		g, got := Gate{Margin: margin}, ""
		for i, f := range c.checks {
			candidate := c.offered[i : i+1]
			if candidate == "-" {
				candidate = ""
			}
			if i > 0 {
				got += ", "
			}
			got += g.Check(candidate, f).String() + " " + g.served
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestWhatIsMeasured(t *testing.T) {
	g := Gate{}
	for _, candidate := range []string{"a", "b", "c"} {
		if !g.Wants(candidate) {
			t.Errorf("%s is new, and is not wanted", candidate)
		}
		g.Check(candidate, map[string]Figures{"a": {unknown, unknown, 1}, "b": {1, unknown, 2}, "c": {2, 1, 0}}[candidate])
	}
	if g.Wants("") || g.Wants("a") || g.Wants("b") || g.Wants("c") || !g.Wants("d") {
		t.Errorf("what is known is measured again: %+v", g)
	}
}

// TestAMarginDoesNotAddUp: whatever four versions come, of figures that stay, none is served that is below the best by
// more than the margin.
func TestAMarginDoesNotAddUp(t *testing.T) {
	figures := []float64{0.25, 0.5, 0.75, 1}
	for course := range 256 {
		g, best := Gate{Margin: 0.25}, 0.0
		at := map[string]float64{"": unknown}
		for i := range 4 {
			candidate := strconv.Itoa(i)
			at[candidate] = figures[course>>(2*i)&3]
			g.Check(candidate, Figures{at[g.served], at[g.fallback], at[candidate]})
			if best = max(best, at[g.served]); at[g.served] < best-g.Margin {
				t.Errorf("course %d: %v after %v", course, at[g.served], best)
			}
		}
	}
}

// TestGateServesNoWorse: over any course of figures, what is served after a check is no worse in it, but for the
// margin, than what was served before it, and than the candidate if that was taken; and if figures do not change, it
// is never below the best by more than the margin, however many swaps there are.
func TestGateServesNoWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.Custom(func(t *rapid.T) float64 {
			return rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.75, 1, math.NaN(), math.Inf(-1)}).Draw(t, "figure")
		})
		g := Gate{Margin: rapid.SampledFrom([]float64{0, 0.25}).Draw(t, "margin")}
		fixed := rapid.Bool().Draw(t, "fixed")
		of, best := map[string]float64{}, math.Inf(-1)
		for i := range rapid.IntRange(1, 30).Draw(t, "checks") {
			candidate := strconv.Itoa(i)
			if rapid.Bool().Draw(t, "none") {
				candidate = ""
			}
			for _, version := range []string{g.served, g.fallback, candidate} {
				if _, measured := of[version]; version != "" && (!measured || !fixed) {
					of[version] = figure.Draw(t, "of "+version)
				}
			}
			at := func(version string) float64 {
				if version == "" {
					return math.NaN()
				}
				return of[version]
			}
			before := g
			d := g.Check(candidate, Figures{at(g.served), at(g.fallback), at(candidate)})
			said := fmt.Sprintf("%+v, %q of %v: %v, %+v", before, candidate, of, d, g)
			if before.served != "" && known(at(g.served)) < max(known(at(before.served)), known(at(before.fallback)))-g.Margin {
				t.Fatalf("a worse one is served: %s", said)
			}
			if (d == Swap) != (g.served == candidate && candidate != "") || (d == RollBack) != (before.fallback != "" && g.served == before.fallback) {
				t.Fatalf("it says what it does not do: %s", said)
			}
			if best = max(best, known(at(g.served))); fixed && known(at(g.served)) < best-g.Margin {
				t.Fatalf("it creeps below the best: %s", said)
			}
		}
	})
}
