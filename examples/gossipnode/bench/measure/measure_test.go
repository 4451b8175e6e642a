package measure

import (
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 100}, 3.5}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
	if got := Median(Quotients([]float64{2, 9, 8}, []float64{1, 3, 2})); got != 3 {
		t.Errorf("the median ratio is %v, want 3", got)
	}
}

// TestStrayAllocations shows that one that is not of every pass adds nothing, be a pass
// of one slice or of many, and that those of every pass count.
func TestStrayAllocations(t *testing.T) {
	for _, c := range []struct {
		mallocs    []float64
		each, want float64
	}{
		{[]float64{0, 1, 0, 0, 50}, 1, 0}, {[]float64{1, 1, 1, 0, 1}, 2, 0},
		{[]float64{4, 4, 5, 4, 6}, 2, 2}, {[]float64{-9, -3, -2}, 2, 0}, {nil, 1, 0},
	} {
		if got := Whole(c.mallocs, c.each); got != c.want {
			t.Errorf("%v, each of %v: %v, want %v", c.mallocs, c.each, got, c.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 25_000_000: "25,000,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
