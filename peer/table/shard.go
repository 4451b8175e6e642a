package table

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shard divides the rows of one table among the peers of a run on one machine.
type Shard struct {
	column string // "" divides at random
}

// maxShardValues is the most values of a column by which rows can be divided.
const maxShardValues = 1 << 20

// ParseShard reads "rows" (at random, by a hash of the row's number and a seed) or
// "by=COLUMN" (each value of a column belongs to one peer, the peers' shares as equal as that
// allows).
func ParseShard(text string) (Shard, error) {
	if text == "rows" {
		return Shard{}, nil
	}
	column, ok := strings.CutPrefix(text, "by=")
	if !ok || column == "" {
		return Shard{}, fmt.Errorf(`%q does not say how rows are divided: want "rows" or "by=COLUMN"`, text)
	}
	return Shard{column: column}, nil
}

// Among gives, for each of so many peers, the filter that keeps its rows; each row is kept by
// one of them. "by=COLUMN" goes over the rows once and counts: values are assigned in order
// of their rows, the most first, each to the peer with the fewest rows so far; a peer may be
// left without rows. Rows without a value are divided at random. The same rows give the same
// shares in every process.
func (s Shard) Among(ctx context.Context, rows Source, peers int, seed uint64) ([]Filter, error) {
	if peers < 1 {
		return nil, fmt.Errorf("rows cannot be divided among %d peers", peers)
	}
	var owners map[string]int
	if s.column != "" {
		counts, err := s.count(ctx, rows)
		if err != nil {
			return nil, fmt.Errorf("dividing rows by column %q: %w", s.column, err)
		}
		owners = owned(counts, peers)
	}
	filters := make([]Filter, peers)
	for peer := range filters {
		filters[peer] = func(b *Batch) (*Batch, error) {
			owner := func(row int) int { return int(hashRow(b.Key(row), shardSalt^seed) % uint64(peers)) }
			if s.column != "" {
				c := b.Find(s.column)
				if c == nil {
					return nil, fmt.Errorf("dividing rows by column %q: %w", s.column, ErrNoColumn)
				}
				owner = byValue(c, func(text string) int {
					if peer, ok := owners[text]; ok {
						return peer
					}
					return int(hashText(text, shardSalt^seed) % uint64(peers))
				}, owner)
			}
			return b.Keep(func(row int) bool { return owner(row) == peer }), nil
		}
	}
	return filters, nil
}

// count counts the rows of each value.
func (s Shard) count(ctx context.Context, rows Source) (map[string]int64, error) {
	counts := map[string]int64{}
	for b, err := range rows(ctx) {
		if err != nil {
			return nil, err
		}
		c := b.Find(s.column)
		if c == nil {
			return nil, ErrNoColumn
		}
		if c.Kind == Number {
			c = c.asCategory()
		}
		CountValues(counts, c, maxShardValues)
		if len(counts) > maxShardValues {
			return nil, fmt.Errorf("it has more than %d values", maxShardValues)
		}
	}
	return counts, nil
}

// owned gives the values to peers.
func owned(counts map[string]int64, peers int) map[string]int {
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	owners, rows := make(map[string]int, len(values)), make([]int64, peers)
	for _, value := range values {
		least := slices.Index(rows, slices.Min(rows))
		owners[value] = least
		rows[least] += counts[value]
	}
	return owners
}
