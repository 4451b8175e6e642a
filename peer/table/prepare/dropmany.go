package prepare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// DropMany leaves out columns of categories with very many values over all members: those are names or numbers of
// single things rather than kinds.
type DropMany struct {
	// Values are how many a category may have. Default: 256; less than 0 is none.
	Values int `json:"values,omitempty"`
	// Dropped are the columns that are left out.
	Dropped []string `json:"dropped,omitempty"`
}

const defaultMany = 256

// Fit implements table.Stage.
func (s *DropMany) Fit(ctx context.Context, flock table.Flock, rows table.Source) error {
	most := max(cmp.Or(s.Values, defaultMany), 0)
	own := make(map[string]map[string]float64)
	err := collect(ctx, rows, nil, table.Category, func(c *table.Column) {
		own[c.Name], _ = table.CountValues(own[c.Name], c, most) // one value above the limit is enough to know
	})
	all, err := gather(ctx, flock, part[map[string]float64]{own, err, []any{most}}, mergedCounts)
	if err != nil {
		return fmt.Errorf("dropping columns of many values: %w", err)
	}
	s.Dropped = nil
	for _, column := range slices.Sorted(maps.Keys(all)) {
		if len(all[column]) > most {
			s.Dropped = append(s.Dropped, column)
		}
	}
	return nil
}

// Transform implements table.Stage.
func (s *DropMany) Transform(b *table.Batch) (*table.Batch, error) {
	out := *b
	out.Columns = slices.DeleteFunc(slices.Clone(b.Columns), func(c table.Column) bool { return slices.Contains(s.Dropped, c.Name) })
	return &out, nil
}
