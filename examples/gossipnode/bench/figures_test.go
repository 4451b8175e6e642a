package bench

import (
	"testing"

	"github.com/seed-97356399/murmuration/peer"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 100}, 3.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if got := median(quotients([]float64{2, 9, 8}, []float64{1, 3, 2})); got != 3 {
		t.Errorf("the median ratio is %v, want 3", got)
	}
}

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
	var then, now peer.Histogram
	then.Counts[3], now.Counts[3], now.Counts[5] = 10, 12, 1
	if got := sinceThen(now, then); got.Counts[3] != 2 || got.Counts[5] != 1 || got.Count() != 3 {
		t.Errorf("%v", got.Counts)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 25_000_000: "25,000,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
