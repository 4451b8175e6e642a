package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/quant"
)

// TestCauses shows that what breaks exchanges off is told apart.
func TestCauses(t *testing.T) {
	for want, err := range map[string]error{
		"cut":         fmt.Errorf("waiting for a slice: %w", io.ErrUnexpectedEOF),
		"time":        fmt.Errorf("waiting: %w", context.DeadlineExceeded),
		"unreachable": fmt.Errorf("opening a stream: %w", seam.ErrUnreachable),
		"given-up":    errAborted,
		"refused":     &refusal{wire.Refuse{Reason: wire.ReasonClosing}},
		"protocol":    fmt.Errorf("a slice: %w", quant.ErrNotFinite),
	} {
		if got := causeNames[causeOf(err)]; got != want {
			t.Errorf("%v is counted as %q, want %q", err, got, want)
		}
	}
	if got := causeNames[causeOf(errors.New("stream reset"))]; got != "cut" {
		t.Errorf("an unknown fault is counted as %q", got)
	}
}

// TestCoarsest shows which codec of several an exchange is counted under.
func TestCoarsest(t *testing.T) {
	for _, c := range []struct {
		ids  []quant.ID
		want quant.ID
	}{
		{nil, 0},
		{[]quant.ID{quant.Raw}, quant.Raw},
		{[]quant.ID{quant.Raw, quant.BF16, quant.Int8}, quant.Int8},
		{[]quant.ID{quant.Lattice8to4, quant.FP16}, quant.Lattice8to4},
		{[]quant.ID{quant.FP16, quant.Lattice8to4, quant.Lattice4to1}, quant.Lattice4to1},
	} {
		if got := coarsest(c.ids); got != c.want {
			t.Errorf("of %v, %d is taken for the coarsest, want %d", c.ids, got, c.want)
		}
	}
}

// TestAges shows what bucket an age falls into.
func TestAges(t *testing.T) {
	var c tallies
	for _, steps := range []uint64{0, 1, 2, 3, 4, 1 << 40} {
		c.grew(steps)
	}
	var a Ages
	for i := range c.ages {
		a.Counts[i] = c.ages[i].Load()
	}
	if a.Counts != [maxAges]uint64{0: 1, 1: 1, 2: 2, 3: 1, maxAges - 1: 1} {
		t.Errorf("buckets %v", a.Counts)
	}
	for i, want := range []uint64{0, 1, 3, 7} {
		if a.Bound(i) != want {
			t.Errorf("bucket %d goes up to %d steps, want %d", i, a.Bound(i), want)
		}
	}
}

// TestReasonNames shows that each reason fits and has a name.
func TestReasonNames(t *testing.T) {
	var counts [maxReasons]atomic.Uint64
	for r := wire.ReasonBusy; r <= wire.ReasonOperator; r++ {
		tally(&counts, r)
	}
	tally(&counts, 200)
	named := byReason(&counts)
	if len(named) != int(wire.ReasonOperator)+1 || named["busy"] != 1 || named["unknown"] != 1 {
		t.Errorf("named %v", named)
	}
}
