package train

import (
	"math"

	"github.com/seed-97356399/murmuration/averaging/merge"
	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// finalOf describes the model that a peer has ended with.
func finalOf(t *training, merged bool) result.FinalResult {
	r := result.FinalResult{Final: settings.FinalLocal, ModelHash: result.Hash(t.work.Params)}
	switch {
	case merged:
		r.Final = settings.FinalMerge
	case t.Final == settings.FinalMerge:
		r.Final = settings.FinalUnmerged
	}
	return r
}

// distanceKnown is the distance between the final models as far as one peer knows it: 0 after a
// merge with others, else NaN. s.Members is the number of members before this peer left.
func distanceKnown(s stats.Peer) cli.Number {
	if s.Merged && s.Members > 1 {
		return 0
	}
	return cli.Number(math.NaN())
}

// mergeOf is the configuration of the final merge, nil without one.
func mergeOf(t *training) *merge.Config {
	if t.Final != settings.FinalMerge {
		return nil
	}
	final := &merge.Config{Deadline: t.FinalWait}
	if t.FinalWeights == settings.WeightsSamples {
		final.Weight = float64(min(max(t.work.Data.Len(), 1), merge.MaxWeight))
	}
	return final
}
