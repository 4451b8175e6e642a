package replica

import (
	"sync/atomic"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// MaxWindow bounds the slices in flight of one lane, and MaxLanes the lanes of an
// exchange; both together are bounded by wire.MaxInDoubt.
const (
	MaxWindow = wire.MaxInDoubt
	MaxLanes  = wire.MaxLanes
)

// maxPending bounds the bytes of differences that a responder keeps pending in all lanes of
// an exchange: no further slice is answered above it, and none is sent. So many fill 1 Gbit/s
// at 60 ms.
const maxPending = 8 << 20

// Terms are what the two sides of an exchange have agreed.
type Terms struct {
	// Partner is the other side.
	Partner string
	// Incarnation is the initiator's life, and Exchange the number that it gave to
	// the exchange.
	Incarnation, Exchange uint64
	// Plan says what the initiator codes each slice with.
	Plan coding.Plan
	// Codecs are those that the responder takes. Default: those of Plan.
	Codecs []coding.ID
	// Window is the number of slices in flight per lane, 1 to MaxWindow; Lanes is
	// the number of streams, 1 to MaxLanes. Values beyond are brought within.
	Window, Lanes int
	// Overlap counts the exchanges under way at the busier side, this one included.
	Overlap int
	// Partial: the initiator sends its slices by urgency, and may leave the rest.
	Partial bool
	// Across is above 0 if the partner is at another site: what is expected of its model is then known from others
	// at other sites, and the exchange weighs so many times as much, since both sides speak for others.
	Across float64
	// Unsummed: frames of slices go without a checksum.
	Unsummed bool
}

// within returns the terms with every number inside its bounds.
func (t Terms) within() Terms {
	t.Lanes = min(max(t.Lanes, 1), MaxLanes)
	t.Window = min(max(t.Window, 1), MaxWindow, wire.MaxInDoubt/t.Lanes)
	t.Overlap = max(t.Overlap, 1)
	if t.Codecs == nil {
		t.Codecs = t.Plan.Codecs()
	}
	return t
}

// pending bounds the bytes of differences pending in a lane before the last of them.
func (t Terms) pending() int { return maxPending / t.Lanes }

// flags are those of frames of slices.
func (t Terms) flags() uint32 {
	if t.Unsummed {
		return wire.FlagUnsummed
	}
	return 0
}

// weight is the share of the difference by which each side moves: half of it if
// neither takes part in another exchange, so that both end at the mean. With c
// exchanges at once, 1/(1+c) keeps the flock stable, which a half does not from
// c = 4 on.
func (t Terms) weight() float64 { return max(t.Across, 1) / float64(1+t.Overlap) }

// bitmap is a set of slices, which several goroutines may look into and add to.
type bitmap []uint64

// ring returns a ring of n, in r's memory if that suffices.
func ring[T any](r []T, n int) []T {
	if cap(r) < n {
		return make([]T, n)
	}
	return r[:n]
}

// sized returns an empty set with room for n slices, in b's memory if that
// suffices.
func (b bitmap) sized(n int) bitmap {
	b = ring(b, (n+63)/64)
	clear(b)
	return b
}

func (b bitmap) has(i int) bool { return atomic.LoadUint64(&b[i/64])>>(i%64)&1 == 1 }

// put adds a slice, and reports whether it was not there yet.
func (b bitmap) put(i int) bool {
	bit := uint64(1) << (i % 64)
	return atomic.OrUint64(&b[i/64], bit)&bit == 0
}
