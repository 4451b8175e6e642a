package train

import (
	"context"

	"github.com/seed-97356399/murmuration/examples/gossipnode/rundescription"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/gossipnode/workload"
	"github.com/seed-97356399/murmuration/peer/checkpoint"
	"github.com/seed-97356399/murmuration/peer/table"
)

// normalize finds how pictures are normalized, where the members are to find it together: as it was
// found before, if this peer goes on from a checkpoint.
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

// normalized is the normalization of the run that the newest checkpoint is of, empty if it cannot
// be had.
func normalized(from checkpoint.Folder) string {
	of, _ := rundescription.Kept(from)
	value, _ := of.Value("normalize")
	return value
}
