package prepare

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/seed-97356399/murmuration/peer/table"
)

// maxDistinct is the most rows of one member whose hashes are compared with the others'.
const maxDistinct = 4 << 20

const markSize = 16

// Distinct finds rows that are equal, in all columns, to an earlier row of the same member or to a
// row of a member before it in the flock's order. keep removes them from the batches of the same
// source, by their keys, so that the flock keeps one of each. Members send 8 bytes of a hash for
// each row. It is for fitting only: a model serves every row. dropped is the number of rows that
// this member leaves out.
func Distinct(ctx context.Context, flock table.Flock, rows table.Source) (keep table.Filter, dropped int, err error) {
	hashes, drop, err := hashesOf(ctx, rows)
	if err := table.Ready(ctx, flock, "ready", err); err != nil {
		return nil, 0, fmt.Errorf("comparing rows: %w", err)
	}
	// A mark tells a member where it is in the flock's order, even if another has the same rows.
	own := make([]byte, markSize, markSize+8*len(hashes))
	rand.Read(own)
	mark := own
	for h := range hashes {
		own = binary.LittleEndian.AppendUint64(own, h)
	}
	all, err := table.Careful(flock).Gather(ctx, "rows", own)
	if err != nil {
		return nil, 0, fmt.Errorf("comparing rows: %w", err)
	}
	for _, theirs := range all {
		if bytes.HasPrefix(theirs, mark) {
			break
		}
		for theirs = theirs[min(markSize, len(theirs)):]; len(theirs) >= 8; theirs = theirs[8:] {
			if key, have := hashes[binary.LittleEndian.Uint64(theirs)]; have {
				drop[key] = true
			}
		}
	}
	return func(b *table.Batch) (*table.Batch, error) {
		return b.Keep(func(row int) bool { return !drop[b.Key(row)] }), nil
	}, len(drop), nil
}

// hashesOf maps the hash of each distinct row of a member to the key of its first occurrence, and lists the keys of the
// repetitions.
func hashesOf(ctx context.Context, rows table.Source) (hashes map[uint64]int64, drop map[int64]bool, err error) {
	hashes, drop = make(map[uint64]int64), make(map[int64]bool)
	for b, err := range rows(ctx) {
		if err != nil {
			return nil, nil, err
		}
		for i := range b.Columns {
			c := &b.Columns[i]
			if at := slices.IndexFunc(c.Numbers, func(x float64) bool { return math.Abs(x) >= table.MaxCount && !math.IsInf(x, 0) }); at >= 0 {
				return nil, nil, fmt.Errorf("column %q is %g in row %d: whole numbers from 2^53 on lose digits, by which rows may differ; read it as a category", c.Name, c.Numbers[at], b.Key(at))
			}
		}
		for row := range b.Rows {
			h := hashOf(b, row)
			if _, seen := hashes[h]; seen {
				drop[b.Key(row)] = true
			} else {
				hashes[h] = b.Key(row)
			}
		}
		if len(hashes) > maxDistinct {
			return nil, nil, fmt.Errorf("more than %d distinct ones at one member: leave this out, or split the table", maxDistinct)
		}
	}
	return hashes, drop, nil
}

// hashOf is 64 bits of the SHA-256 of a row's values, texts with their lengths, so that rows
// are told apart whatever characters their texts have.
func hashOf(b *table.Batch, row int) uint64 {
	h := sha256.New()
	var number [8]byte
	for i := range b.Columns {
		c := &b.Columns[i]
		switch {
		case c.Kind == table.Number:
			x := c.Numbers[row] + 0 // makes 0 of -0
			if math.IsNaN(x) {
				x = math.NaN() // one bit pattern for all NaN
			}
			binary.LittleEndian.PutUint64(number[:], math.Float64bits(x))
			h.Write(number[:])
		case c.Codes[row] == table.Missing:
			h.Write([]byte{0})
		default:
			text := c.Values[c.Codes[row]]
			binary.LittleEndian.PutUint64(number[:], uint64(len(text)))
			h.Write([]byte{1})
			h.Write(number[:])
			io.WriteString(h, text)
		}
	}
	return binary.LittleEndian.Uint64(h.Sum(nil))
}
