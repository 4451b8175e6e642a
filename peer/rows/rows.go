// Package rows gives batches of rows that some members of a run hold to members that train on them. Hold has a node
// give its rows, which nobody's node does otherwise; From asks holders for batches ahead of need. Rows travel as their
// holder's Set encodes them: what they are is the service's. See docs/design/044.
package rows

import (
	"fmt"
	"time"

	"github.com/seed-97356399/murmuration/internal/handout"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// Set is rows that a member gives to others. Safe for concurrent use.
type Set interface {
	// Rows is how many there are, at most 2^31 − 1. It does not change.
	Rows() int
	// Append appends the encoding of some rows, by their numbers from 0, to dst. Encodings can be joined: that of some
	// rows, followed by that of others, is one of all. Each has at least one byte, and 1,024 rows at most 64 MiB.
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

// Counts tell what became of rows, each counted every time that it was handed out: HandedOut is Trained + Lost + Outstanding.
type Counts = handout.Counts

// Holding is what a holder says of its rows.
type Holding = wire.Holding

// Bounds.
const (
	// MaxBatch is the most rows in a batch.
	MaxBatch = wire.MaxWantedRows
	// MaxHops is the most holders through which a row comes.
	MaxHops = wire.MaxHops
	// DefaultRate is what a holder sends to one partner in a second, in bytes.
	DefaultRate = 64 << 20

	maxOut     = 64                    // answers that a taker has asked for on a stream and not told the end of
	maxStreams = 64                    // of one partner
	maxPaces   = 1 << 12               // partners whose rate is remembered
	maxAnswer  = 1 << 20               // bytes that an answer has about
	leastRate  = 4 * wire.MaxRowsData  // or a frame on one of several streams takes longer than a stall
	mostAhead  = 64                    // batches that are ready or on their way
	stall      = 5 * time.Second       // for which an answer may not come, and a frame not end
	again      = 50 * time.Millisecond // after which is asked again where there was nothing
	leastRest  = time.Second           // for which a holder is left alone that has failed; it doubles
	mostRest   = time.Minute
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

// piece is some rows on their way, and who is to be told what became of them.
type piece struct {
	rows, own int // all, and those of the one that has sent them
	data      []byte
	settle    func(handout.Fate)
}

// joined is all pieces as one.
func joined(pieces []piece) (all piece) {
	for _, p := range pieces {
		all.rows, all.data = all.rows+p.rows, append(all.data, p.data...)
	}
	all.settle = func(fate handout.Fate) {
		for _, p := range pieces {
			p.settle(fate)
		}
	}
	return all
}
