package exchange

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestNetAllocations shows that what the reference allocates too does not count,
// nor what happens once in an exchange, and that a slice's does.
func TestNetAllocations(t *testing.T) {
	for _, c := range []struct {
		ours, reference     []float64
		perExchange, perOne float64
	}{
		{[]float64{500, 600, 510}, []float64{400, 580, 420}, 90, 0},
		{[]float64{350, 350, 350}, []float64{100, 100, 100}, 250, 2},
		{[]float64{90, 90, 90}, []float64{400, 400, 400}, -310, 0},
	} {
		if whole, one := netAllocations(c.ours, c.reference, 100); whole != c.perExchange || one != c.perOne {
			t.Errorf("%v net of %v: %v an exchange and %v a slice, want %v and %v", c.ours, c.reference, whole, one, c.perExchange, c.perOne)
		}
	}
}

// TestSinceThen shows that waits from before a measurement are left out of it.
func TestSinceThen(t *testing.T) {
	var then, now stats.Histogram
	then.Counts[3], now.Counts[3], now.Counts[5] = 10, 12, 1
	if got := sinceThen(now, then); got.Counts[3] != 2 || got.Counts[5] != 1 || got.Count() != 3 {
		t.Errorf("%v", got.Counts)
	}
}

// TestBounds shows that the bounds of the flags are those of package peer: it
// starts with the largest values.
func TestBounds(t *testing.T) {
	s := exchangeSettings{parameters: 1, codec: rawCodec, lanes: maxLanes, slice: maxSlice}
	n, err := newNode(t.Context(), s, nil, newLog(cli.Streams{Err: t.Output()}))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	for name, beyond := range map[string]exchangeSettings{
		"lanes": {parameters: 1, codec: rawCodec, lanes: maxLanes + 1, slice: maxSlice},
		"slice": {parameters: 1, codec: rawCodec, lanes: maxLanes, slice: maxSlice + 1},
	} {
		if n, err := newNode(t.Context(), beyond, nil, newLog(cli.Streams{Err: t.Output()})); err == nil {
			_ = n.close()
			t.Errorf("%s: package peer takes more than the flag", name)
		}
	}
}
