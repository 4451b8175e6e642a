package train

import (
	"context"

	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/table"
)

// normalize finds the normalization of pictures, with --normalize flock. A peer that goes on from a
// checkpoint uses the normalization found before. Otherwise the members measure it together.
func (p *preparing) normalize(ctx context.Context) error {
	if p.Normalize != settings.OfFlock {
		return nil
	}
	if known := normalized(p.Checkpoints()); known != "" {
		p.Normalize = known
		return nil
	}
	if p.Strategy == settings.StrategyAlone {
		return workload.Normalize(ctx, table.Alone{}, p.Settings)
	}
	return p.together(ctx, func(flock table.Flock) error { return workload.Normalize(ctx, flock, p.Settings) })
}

// normalized is the normalization in the run description of the newest checkpoint, empty if there
// is none.
func normalized(from checkpoint.Folder) string {
	of, _ := rundescription.Kept(from)
	value, _ := of.Value("normalize")
	return value
}
