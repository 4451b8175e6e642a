// Package rows gives batches of rows that some members of a run hold to members that train on them. A node gives rows
// only if Hold is called. From asks holders for batches in advance. Rows are sent as the Set of their holder encodes
// them: their meaning is up to the application. See docs/design/044.
package rows

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Set is the rows that a member gives to others. Safe for concurrent use.
type Set interface {
	// Rows is the number of rows, 1 to 2^31 − 1. It does not change.
	Rows() int
	// Append appends the encodings of the rows with these numbers, from 0, to dst. Encodings can be joined: the one of
	// some rows, followed by the one of others, encodes all of them. A row takes 1 byte to 32 MiB.
	Append(dst []byte, rows []int32) ([]byte, error)
}

// Policy says how a holder divides the rows of an epoch among those that take them.
type Policy = handout.Policy

// The policies of a holder. Random: the taker that asks gets the next rows of a random order. RoundRobin: row i of that
// order goes to taker i mod N, where N depends on volume and speeds. Speed: shares in proportion to measured speeds.
const (
	Random     = handout.Random
	RoundRobin = handout.RoundRobin
	Speed      = handout.Speed
)

// Bounds.
const (
	// MaxBatch is the most rows in a batch.
	MaxBatch = wire.MaxRows
	// MaxHops is the most holders through which a row comes.
	MaxHops = wire.MaxHops
	// DefaultRate is the most that a holder sends to one partner, in bytes per second.
	DefaultRate = 64 << 20
	// Patience is how long a holder keeps a share for a member that neither asks for rows nor reports on rows that it has.
	Patience = handout.Patience

	ahead      = wire.MaxRowParts      // the most batches in one question, which costs 1/3 ms at both ends
	maxOut     = 64                    // the most answers whose fate a taker has not reported
	maxBuffers = 8                     // the most buffers kept for later answers
	looked     = 64                    // the most rows that Hold looks at, for some that can be read
	maxKnown   = 1 << 12               // the most partners of which the rate and the counts are remembered
	maxAnswer  = 1 << 20               // approximate bytes of an answer, of a taker that has few
	outDoubles = maxOut / 4            // so many more answers that a taker has, and one may be twice as large
	leastRate  = 4 * wire.MaxRowsData  // with less, a frame on one of several streams takes so long that it looks stalled
	again      = 50 * time.Millisecond // time until the next question if no holder had rows
	appended   = 256 << 10             // bytes that are encoded at once, so that rows larger than expected exceed maxAnswer little
	longest    = 40 * time.Second      // an answer may take from its first frame on: at a hop further away, this comes before its first frame
	leastRest  = time.Second           // time for which a holder that failed is not asked; doubles with each failure
	mostRest   = time.Minute           // the longest such time, unless waste asks for more
	waste      = 10                    // a holder that gave nothing is not asked for so many times as long as it took
	lastAnswer = 5 * time.Second       // the longest time that Close waits for answers under way
)

// Fault is an error that a partner has caused: a holder, or a member that takes rows.
type Fault struct {
	Partner transport.PeerID
	Err     error
}

// Error names the partner.
func (f *Fault) Error() string { return fmt.Sprintf("rows of %s: %v", f.Partner, f.Err) }

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Check checks the joined encodings of so many rows that a holder sent: their shape, their values. After an error nothing
// is taken from that holder for a minute. Several goroutines call it at the same time.
type Check func(rows int, data []byte) error

// Counts tell what became of rows.
type Counts = stats.Rows

// answer is the answer to a question. Its rows come in parts, one for each batch that was asked for.
type answer struct {
	rows, sizes []uint32 // of each part: number of rows, and bytes
	data        []byte   // encodings of all parts, joined
	// settle reports to the giver of the rows: the first parts were trained on, the next are lost, and the rest is unused.
	settle func(trained, lost int)
}

// count is the number of rows in all parts.
func count(parts []uint32) (rows int) {
	for _, n := range parts {
		rows += int(n)
	}
	return rows
}

// fates turns numbers of parts into numbers of rows: trained on, lost, and returned.
func (a *answer) fates(trained, lost int) (t, l, returned int) {
	return count(a.rows[:trained]), count(a.rows[trained : trained+lost]), count(a.rows[trained+lost:])
}

// joined merges several answers to one question of so many parts, part by part.
func joined(parts int, answers []answer) answer {
	if len(answers) == 1 {
		return answers[0]
	}
	all, at := answer{rows: make([]uint32, parts), sizes: make([]uint32, parts)}, make([]uint32, len(answers))
	var pieces [][]byte // joined at once: a batch may be large, and would be copied each time that it grew
	for part := range parts {
		for i, a := range answers {
			end := at[i] + a.sizes[part]
			pieces, at[i] = append(pieces, a.data[at[i]:end]), end
			all.rows[part] += a.rows[part]
			all.sizes[part] += a.sizes[part]
		}
	}
	all.data = slices.Concat(pieces...)
	for i := range answers {
		answers[i].data = nil
	}
	all.settle = func(trained, lost int) {
		for _, a := range answers {
			a.settle(trained, lost)
		}
	}
	return all
}
