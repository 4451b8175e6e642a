package prepare

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/seed-97356399/murmuration/peer/table"
)

// Sampler draws rows of one member for batches, in the frequencies of the flock: a member whose
// rows are of few classes or groups draws the rare ones more often, so that what members learn
// from looks as alike as their rows allow.
type Sampler struct {
	upTo []float64 // sum of weights up to each row
}

// NewSampler weighs rows by what group each is of (a class, a column's value, both): by the
// share that the group has in the flock over its share here. Groups that this member has no rows of it
// cannot draw. It is fitted by one Gather of counts.
func NewSampler(ctx context.Context, flock table.Flock, name string, groups []string) (*Sampler, error) {
	own := make(map[string]float64)
	for _, g := range groups {
		own[g]++
	}
	all, err := gather(ctx, flock, name, part[float64]{own: own}, func(a, b float64) (float64, error) { return a + b, nil })
	if err != nil {
		return nil, err
	}
	s := &Sampler{upTo: make([]float64, len(groups))}
	total := 0.0
	for row, g := range groups {
		total += all[g] / own[g]
		s.upTo[row] = total
	}
	return s, nil
}

// Draw appends n rows to dst, each by its weight, with replacement: the same for the same
// random numbers. It gives none of none.
func (s *Sampler) Draw(dst []int, rng *rand.Rand, n int) []int {
	if len(s.upTo) == 0 {
		return dst
	}
	for range n {
		at := rng.Float64() * s.upTo[len(s.upTo)-1]
		dst = append(dst, min(sort.Search(len(s.upTo), func(i int) bool { return s.upTo[i] > at }), len(s.upTo)-1))
	}
	return dst
}

// Sharing says how rows are handed to other members: see Share.
type Sharing struct {
	// Rows is how many a member ends with, of all members': a random sample. Default: as many
	// as it has.
	Rows int
	// Bytes bounds what one member sends in one round. Default: 4 MiB.
	Bytes int
	// Seed makes the sample repeatable.
	Seed uint64
}

const (
	defaultShare = 4 << 20
	maxRounds    = 1024
)

// Share gives each member a random sample of all members' rows, in place of its own: rows
// LEAVE their members. It is for numbers that were prepared (standardized, one-hot), by rounds
// in each of which every member brings a random part of its rows, in proportion to what it has, and
// each takes its share at random.
func Share(ctx context.Context, flock table.Flock, name string, rows *table.Batch, how Sharing) (*table.Batch, error) {
	if how.Rows == 0 {
		how.Rows = rows.Rows
	}
	names, rounds, err := agreeOnShares(ctx, flock, name+"/columns", rows, how)
	if err != nil {
		return nil, fmt.Errorf("sharing rows: %w", err)
	}
	width := 8 * max(len(names), 1)
	own := fnv.New64a()
	own.Write(rowsOf(rows, 0, min(rows.Rows, 16), nil)) // so that two members do not draw alike
	rng := rand.New(rand.NewPCG(how.Seed, own.Sum64()))
	order, out, seen := rng.Perm(rows.Rows), make([][]float64, len(names)), 0
	for round := range rounds {
		data := rowsOf(rows, round*rows.Rows/rounds, (round+1)*rows.Rows/rounds, order)
		all, err := flock.Gather(ctx, fmt.Sprintf("%s/%d", name, round), data)
		if err != nil {
			return nil, err
		}
		for _, theirs := range all {
			if len(theirs)%width != 0 {
				return nil, fmt.Errorf("sharing rows: a member brings %d bytes, no whole rows of %d", len(theirs), width)
			}
			seen = take(out, theirs, how.Rows, seen, rng)
		}
	}
	return sharedBatch(names, out), nil
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

// rowsOf are the numbers of rows from..to in an order, row after row; nil is their own.
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

func sharedBatch(names []string, columns [][]float64) *table.Batch {
	b := &table.Batch{Columns: make([]table.Column, len(columns))}
	for c, name := range names {
		b.Columns[c] = table.Column{Name: name, Kind: table.Number, Numbers: columns[c]}
		b.Rows = len(columns[c])
	}
	return b
}

// shares is what a member tells before rows move, so that all go through as many rounds or
// none does.
type shares struct {
	Columns []string `json:"columns"`
	Rows    int      `json:"rows"`
	Bytes   int      `json:"bytes"`
	Fault   string   `json:"fault,omitempty"`
}

// agreeOnShares finds what columns rows have, which a member without rows need not know, and in
// how many rounds every member has brought its own. What is wrong at one is an error at all.
func agreeOnShares(ctx context.Context, flock table.Flock, name string, rows *table.Batch, how Sharing) ([]string, int, error) {
	own := shares{Rows: rows.Rows, Bytes: how.Bytes}
	if own.Bytes == 0 {
		own.Bytes = defaultShare
	}
	for i := range rows.Columns {
		c := &rows.Columns[i]
		if own.Columns = append(own.Columns, c.Name); c.Kind != table.Number {
			own.Fault = fmt.Sprintf("column %q is of categories: prepare it first", c.Name)
		}
	}
	if how.Rows < 0 {
		own.Fault = fmt.Sprintf("%d rows are asked for: want 0 or more", how.Rows)
	}
	data, err := json.Marshal(own)
	if err != nil {
		return nil, 0, err
	}
	brought, err := flock.Gather(ctx, name, data)
	if err != nil {
		return nil, 0, err
	}
	all := make([]shares, len(brought))
	var names []string
	for i, data := range brought {
		of := &all[i]
		if err := json.Unmarshal(data, of); err != nil {
			return nil, 0, fmt.Errorf("what member %d of %d tells: %w", i, len(all), err)
		}
		switch {
		case of.Fault != "":
			return nil, 0, fmt.Errorf("member %d of %d: %s", i, len(all), of.Fault)
		case len(of.Columns) == 0 && of.Rows == 0: // it takes the columns of others
		case names == nil:
			names = of.Columns
		case !slices.Equal(names, of.Columns):
			return nil, 0, fmt.Errorf("member %d of %d has columns %q, others %q: prepare all rows by one pipeline", i, len(all), of.Columns, names)
		}
	}
	width, rounds := 8*max(len(names), 1), 0
	for i, of := range all {
		if of.Bytes < width {
			return nil, 0, fmt.Errorf("member %d of %d allows %d bytes a round: want room for one row of %d bytes", i, len(all), of.Bytes, width)
		}
		each := of.Bytes / width // whole rows
		rounds = max(rounds, (of.Rows+each-1)/each)
	}
	if rounds > maxRounds {
		return nil, 0, fmt.Errorf("%d rounds, at most %d: allow more bytes in each", rounds, maxRounds)
	}
	return names, rounds, nil
}
