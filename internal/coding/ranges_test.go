package coding

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestRangeCodes: every code comes back from what it stands for, each a quarter of an
// octave above the one before.
func TestRangeCodes(t *testing.T) {
	if RangeOf(1) != MinRange || RangeOf(255) != MaxRange || RangeOf(0) != 0 {
		t.Errorf("codes 0, 1 and 255 stand for %v, %v and %v", RangeOf(0), RangeOf(1), RangeOf(255))
	}
	for c := 1; c < 256; c++ {
		r := RangeOf(byte(c))
		if want := math.Exp2(float64(c)/4 - 44); math.Abs(float64(r)/want-1) > 1e-6 {
			t.Errorf("code %d stands for %v, want %v", c, r, want)
		}
		if got := RangeCode(r); got != byte(c) {
			t.Errorf("code %d comes back as %d", c, got)
		}
		if above := RangeCode(math.Nextafter32(r, 1e9)); above != byte(c+1) {
			t.Errorf("just above code %d is code %d", c, above)
		}
	}
	for _, r := range []float64{0, -1, math.NaN(), math.Inf(1), 1e6} {
		if c := RangeCode(float32(r)); c != 0 {
			t.Errorf("%v has code %d", r, c)
		}
	}
}

func TestRangeCodesRoundUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := float32(math.Exp2(rapid.Float64Range(-60, 19.7).Draw(t, "octave")))
		sent := RangeOf(RangeCode(r))
		if sent < r || r > MinRange && float64(sent) > 1.1893*float64(r) {
			t.Fatalf("%v is sent as %v", r, sent)
		}
	})
}

func TestRanges(t *testing.T) {
	for _, c := range []struct{ r, least, most float32 }{{0, 0, 0}, {1, 1, 1}, {3, 3, 3.6}} {
		if got := RangeOf(RangeCode(c.r)); got < c.least || got > c.most {
			t.Errorf("range %v arrives as %v", c.r, got)
		}
	}
}

// TestTrack: up at once, down slowly, and never to unknown.
func TestTrack(t *testing.T) {
	for _, c := range []struct{ r, seen, want float32 }{
		{0, 3, 3}, {1, 3, 3}, {1, 1, 1}, {1, 0.5, 0.9}, {0, 0, MinRange}, {MinRange, 0, MinRange},
	} {
		if got := Track(c.r, c.seen); math.Abs(float64(got-c.want)) > 1e-7*float64(c.want) {
			t.Errorf("from %v, %v was seen: %v, want %v", c.r, c.seen, got, c.want)
		}
	}
}

func TestSet(t *testing.T) {
	const n = 20*BlockLen + 7
	s := make(Set, SetSize(n))
	for _, i := range []int{0, 1, 5, 19, 20} {
		s.Put(i)
	}
	var runs [][2]int
	for from, to := range s.Runs(n) {
		runs = append(runs, [2]int{from / BlockLen, to})
	}
	want := [][2]int{{0, 2 * BlockLen}, {5, 6 * BlockLen}, {19, n}}
	if len(runs) != 3 || runs[0] != want[0] || runs[1] != want[1] || runs[2] != want[2] {
		t.Errorf("runs %v, want %v", runs, want)
	}
	if s.Count() != 5 || s.Values(n) != 4*BlockLen+7 || s.Has(2) || !s.Has(20) || s.Has(1000) {
		t.Errorf("%d blocks of %d values", s.Count(), s.Values(n))
	}
	if !s.Fits(n) || s.Fits(20*BlockLen) || !Set(nil).Fits(0) || !append(s, 0, 0).Fits(n) {
		t.Errorf("fits %v, %v", s.Fits(n), s.Fits(20*BlockLen))
	}
	for range s.Runs(n) {
		break
	}
}
