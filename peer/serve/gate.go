package serve

import "math"

// Gate decides which version of a model is served, by figures on held-out rows, of which larger is better. It is a
// pure state machine; the zero value serves none. It knows the version that is served, the best of those before it
// (the fallback), and the last that was worse, which is not measured again.
type Gate struct {
	// Margin is how much less still counts as no worse, 0 or more. It does not add up over many swaps, since the
	// fallback stays the best of those before.
	Margin                    float64
	served, fallback, refused string // "" is none
}

// Figures are those of one check, all on the same rows. NaN is no version, or one that cannot be measured.
type Figures struct{ Served, Fallback, Candidate float64 }

// Decision is what comes of a check.
type Decision uint8

const (
	Keep     Decision = iota // the same version is served
	Swap                     // the candidate is served
	RollBack                 // the fallback is served again
	Refuse                   // the same version is served, since the candidate is worse
	decisions
)

func (d Decision) String() string {
	return [decisions]string{"kept", "swapped", "rolled_back", "refused"}[d]
}

// Wants tells whether a version is to be measured as a candidate.
func (g *Gate) Wants(version string) bool {
	return version != "" && version != g.served && version != g.fallback && version != g.refused
}

// Check decides by the figures of one check; candidate is "" without one. The first version is taken whatever its
// figure. If nothing can be measured, nothing changes.
func (g *Gate) Check(candidate string, f Figures) Decision {
	served, fallback := known(f.Served), known(f.Fallback)
	switch {
	case candidate != "" && (g.served == "" || f.Candidate >= max(served, fallback)-g.Margin):
		if g.fallback == "" || served >= fallback {
			g.fallback = g.served
		}
		g.served = candidate
		return Swap
	case g.fallback != "" && served < fallback-g.Margin:
		g.refused, g.served, g.fallback = g.served, g.fallback, ""
		return RollBack
	case candidate != "":
		g.refused = candidate
		return Refuse
	}
	return Keep
}

// known is a figure, or one below all others if it is NaN.
func known(figure float64) float64 {
	if math.IsNaN(figure) {
		return math.Inf(-1)
	}
	return figure
}
