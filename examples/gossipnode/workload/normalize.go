package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/settings"
	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/peer/table"
)

// Normalize sets --normalize to the mean and the deviation of the training pictures of all members, who call it
// together. Levels are whole numbers, so their sums are exact.
func Normalize(ctx context.Context, flock table.Flock, s *settings.Settings) error {
	levels, err := levelsOf(ctx, *s)
	if err := table.Ready(ctx, flock, "normalize/ready", err, s.Dataset, len(levels)); err != nil {
		return err
	}
	sums, _, err := flock.Sum(ctx, "normalize", levels)
	if err != nil {
		return fmt.Errorf("summing the levels of all pictures: %w", err)
	}
	norm, err := dataset.NormOf(sums)
	if err != nil {
		return err
	}
	s.Normalize = dataset.FormatNorm(norm)
	return nil
}

// levelsOf counts the levels in this member's folder.
func levelsOf(ctx context.Context, s settings.Settings) ([]float64, error) {
	config, err := s.DataConfig(0)
	if err != nil {
		return nil, cli.Usage(err)
	}
	levels, err := dataset.Levels(ctx, config)
	if errors.Is(err, dataset.ErrConfig) {
		return nil, cli.Usage(err)
	}
	return levels, cli.Config(err)
}
