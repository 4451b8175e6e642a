// Package rows gives batches of rows that some members of a run hold to members that train on them. Hold has a node
// give its rows, which nobody's node does otherwise; From asks holders for batches ahead of need. Rows travel as their
// holder's Set encodes them: what they are is the service's. See docs/design/044.
package rows

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Set is rows that a member gives to others. Safe for concurrent use.
type Set interface {
	// Rows is how many there are, at most 2^31 − 1. It does not change.
	Rows() int
	// Append appends the encoding of some rows, by their numbers from 0, to dst. Encodings can be joined: that of some
	// rows, followed by that of others, is one of all. Each has at least one byte, and none more than 32 MiB.
	Append(dst []byte, rows []int32) ([]byte, error)
}

// Policy says how a holder divides the rows of an epoch among those that take them.
type Policy = handout.Policy

// The policies of a holder. Random: whoever asks gets the next rows of a random order. RoundRobin: the i-th row of that
// order goes to the taker i mod N, where N is chosen by volume and speed. Speed: shares by the takers' measured speeds.
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
	// DefaultRate is what a holder sends to one partner in a second, in bytes.
	DefaultRate = 64 << 20
	// Patience is for how long a holder keeps a share for a member that neither asks for it nor tells of rows that it has.
	Patience = handout.Patience

	ahead      = wire.MaxRowParts      // batches that are asked for at once: a question costs a third of a millisecond at both ends
	maxOut     = 64                    // answers of which a taker has not told what became of them
	maxBuffers = 8                     // of answers that are kept for the next
	maxPaces   = 1 << 12               // partners whose rate is remembered
	maxAnswer  = 1 << 20               // bytes that an answer has about
	leastRate  = 4 * wire.MaxRowsData  // or a frame on one of several streams takes longer than a stall
	again      = 50 * time.Millisecond // after which is asked again where there was nothing
	leastRest  = time.Second           // for which a holder is left alone that has failed; it doubles
	mostRest   = time.Minute
	lastAnswer = 5 * time.Second // for which Close waits for what is on its way
)

// Fault is what was wrong with a partner, a holder or one that takes rows.
type Fault struct {
	Partner transport.PeerID
	Err     error
}

// Error names the partner.
func (f *Fault) Error() string { return fmt.Sprintf("rows of %s: %v", f.Partner, f.Err) }

// Unwrap gives what was wrong.
func (f *Fault) Unwrap() error { return f.Err }

// Check looks at the encodings of some rows as they come from a holder: their shape, their values. An error names that
// holder, of which nothing is taken for a minute. It is called by several goroutines at once.
type Check func(rows int, data []byte) error

// Counts tell what became of rows.
type Counts = stats.Rows

// answer is the rows that answer a question, in parts: those of the first batch that was asked for, then those of the next.
type answer struct {
	rows, sizes []uint32 // of each part, the latter in bytes
	data        []byte   // of all parts, joined
	// settle tells who gave them that the first parts were trained on, those behind them are lost, and the others nobody saw.
	settle func(trained, lost int)
}

// count counts the rows of parts.
func count(parts []uint32) (rows int) {
	for _, n := range parts {
		rows += int(n)
	}
	return rows
}

// fates are what became of rows whose parts are settled.
func (a *answer) fates(trained, lost int) (t, l, returned int) {
	return count(a.rows[:trained]), count(a.rows[trained : trained+lost]), count(a.rows[trained+lost:])
}

// joined puts answers to one question of so many parts together, part by part.
func joined(parts int, answers []answer) answer {
	if len(answers) == 1 {
		return answers[0]
	}
	all, at := answer{rows: make([]uint32, parts), sizes: make([]uint32, parts)}, make([]uint32, len(answers))
	for part := range parts {
		for i, a := range answers {
			end := at[i] + a.sizes[part]
			all.data, at[i] = append(all.data, a.data[at[i]:end]...), end
			all.rows[part] += a.rows[part]
			all.sizes[part] += a.sizes[part]
		}
	}
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
