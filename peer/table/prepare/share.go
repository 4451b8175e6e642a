package prepare

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Sharing says how rows are handed to other members: see Share. Members may differ in it.
type Sharing struct {
	// Rows is how many a member ends with, of all members': a random sample. Default: as many
	// as it has.
	Rows int
	// Bytes bounds what one member brings in one round. Default: 4 MiB.
	Bytes int
	// Seed makes the sample repeatable, where members are in the same order.
	Seed uint64
}

const (
	defaultShare = 4 << 20
	maxRounds    = 1024
)

// Share gives each member a random sample of all members' rows, in place of its own: rows LEAVE
// their members, together as many as members end with, or all there are. It works on prepared
// numbers (standardized, one-hot) in rounds: in each, every member sends a random part of its
// rows, in proportion to how many it has, and each keeps a random share of all. A member without
// rows passes nil and takes part, with the columns of the others.
func Share(ctx context.Context, flock table.Flock, rows *table.Batch, how Sharing) (*table.Batch, error) {
	if rows == nil {
		rows = &table.Batch{}
	}
	how.Rows, how.Bytes = cmp.Or(how.Rows, rows.Rows), cmp.Or(how.Bytes, defaultShare)
	plan, err := agreeOnShares(ctx, flock, rows, how)
	if err != nil {
		return nil, fmt.Errorf("sharing rows: %w", err)
	}
	own := fnv.New64a()
	own.Write(rowsOf(rows, 0, min(rows.Rows, 16), nil)) // so that members draw different random numbers
	rng := rand.New(rand.NewPCG(how.Seed, own.Sum64()))
	order, out, seen := rng.Perm(rows.Rows)[:plan.brings(rows.Rows)], make([][]float64, len(plan.names)), 0
	for round := range plan.rounds {
		data := rowsOf(rows, round*len(order)/plan.rounds, (round+1)*len(order)/plan.rounds, order)
		all, err := flock.Gather(ctx, fmt.Sprint(round), data)
		if err != nil {
			return nil, fmt.Errorf("sharing rows: %w", err)
		}
		for _, theirs := range all {
			if len(theirs)%plan.width() != 0 {
				return nil, fmt.Errorf("sharing rows: a member brings %d bytes, no whole rows of %d", len(theirs), plan.width())
			}
			seen = take(out, theirs, how.Rows, seen, rng)
		}
	}
	b := &table.Batch{Columns: make([]table.Column, len(out))}
	for c, name := range plan.names {
		b.Columns[c] = table.Column{Name: name, Kind: table.Number, Numbers: out[c]}
		b.Rows = len(out[c])
	}
	return b, nil
}

// take keeps a sample of at most so many of all rows seen so far (Vitter's reservoir, 1985).
func take(out [][]float64, theirs []byte, most, seen int, rng *rand.Rand) int {
	for width := 8 * len(out); width > 0 && len(theirs) >= width; theirs = theirs[width:] {
		seen++
		at := len(out[0])
		if at >= most {
			if at = rng.IntN(seen); at >= most {
				continue
			}
		}
		for c := range out {
			if at == len(out[c]) {
				out[c] = append(out[c], 0)
			}
			out[c][at] = math.Float64frombits(binary.LittleEndian.Uint64(theirs[8*c:]))
		}
	}
	return seen
}

// rowsOf are the bytes of rows from..to in the given order, row after row; a nil order is that of the batch.
func rowsOf(b *table.Batch, from, to int, order []int) (data []byte) {
	for i := from; i < to; i++ {
		row := i
		if order != nil {
			row = order[i]
		}
		for c := range b.Columns {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(b.Columns[c].Numbers[row]))
		}
	}
	return data
}

// shares is what a member announces before rows are sent.
type shares struct {
	Columns []string `json:"columns"`
	Rows    int      `json:"rows"`
	Want    int      `json:"want"`
	Bytes   int      `json:"bytes"`
}

// plan is what all members have agreed on, so that all take part in the same number of rounds.
type plan struct {
	names  []string // names of the columns; a member without rows gets them from the others
	part   float64  // share of its rows that each member sends in all
	rounds int
}

func (p plan) width() int { return 8 * max(len(p.names), 1) }

// brings is how many of its rows a member sends.
func (p plan) brings(rows int) int { return min(int(math.Ceil(p.part*float64(rows))), rows) }

// fault is why a member's rows cannot be shared.
func (how Sharing) fault(rows *table.Batch) error {
	var faults []error
	for i := range rows.Columns {
		if c := &rows.Columns[i]; c.Kind != table.Number {
			faults = append(faults, fmt.Errorf("column %q is of categories: prepare it first", c.Name))
		}
	}
	if width := 8 * max(len(rows.Columns), 1); how.Bytes < width {
		faults = append(faults, fmt.Errorf("Bytes is %d: want room for one row of %d", how.Bytes, width))
	}
	if how.Rows < 0 {
		faults = append(faults, fmt.Errorf("Rows is %d: want 0 or more", how.Rows))
	}
	return errors.Join(faults...)
}

// agreeOnShares agrees on the columns and on the number of rounds.
func agreeOnShares(ctx context.Context, flock table.Flock, rows *table.Batch, how Sharing) (p plan, err error) {
	if err := table.Ready(ctx, flock, "ready", how.fault(rows)); err != nil {
		return p, err
	}
	all, err := table.GatherJSON(ctx, flock, "columns", shares{rows.Names(), rows.Rows, how.Rows, how.Bytes})
	if err != nil {
		return p, err
	}
	have, want := 0.0, 0.0
	for i, of := range all {
		have, want = have+float64(of.Rows), want+float64(of.Want)
		switch {
		case len(of.Columns) == 0 && of.Rows == 0: // a member without rows
		case p.names == nil:
			p.names = of.Columns
		case !slices.Equal(p.names, of.Columns):
			return p, fmt.Errorf("member %d of %d has columns %q, others %q: prepare all rows by one pipeline", i+1, len(all), of.Columns, p.names)
		}
	}
	p.part = min(max(want, 0)/max(have, 1), 1)
	for _, of := range all {
		each := max(of.Bytes/p.width(), 1) // whole rows
		p.rounds = max(p.rounds, (p.brings(of.Rows)+each-1)/each)
	}
	if p.rounds > maxRounds {
		return p, fmt.Errorf("%d rounds, at most %d: allow more bytes in each", p.rounds, maxRounds)
	}
	return p, nil
}
