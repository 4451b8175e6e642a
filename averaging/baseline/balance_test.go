package baseline

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSharesFollowSpeed(t *testing.T) {
	for _, c := range []struct {
		total  int
		speeds []float64
		want   []int
	}{
		{128, []float64{1, 1, 2, 4}, []int{16, 16, 32, 64}},
		{10, []float64{1, 1, 1}, []int{4, 3, 3}},
		{3, []float64{1, 1000, 1000}, []int{1, 1, 1}},
		{2, []float64{1, 1, 1}, []int{1, 1, 1}},
		{100, []float64{1, 1e6}, []int{1, 99}},
		{12, []float64{2, 0, 4}, []int{3, 4, 5}}, // 2.67, 4, 5.33
		{9, []float64{math.NaN(), math.Inf(1), -3}, []int{3, 3, 3}},
		{8, []float64{math.MaxFloat64, math.MaxFloat64}, []int{4, 4}},
		{5, nil, nil},
	} {
		if got := Shares(c.total, c.speeds); !slices.Equal(got, c.want) {
			t.Errorf("%d among %v: %v, want %v", c.total, c.speeds, got, c.want)
		}
	}
}

// No other division of the same total is nearer to its end for the slowest than by the
// time of one sample.
func TestSharesEndTogether(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		speeds := rapid.SliceOfN(rapid.Float64Range(0.5, 50), 1, 20).Draw(r, "speeds")
		total := rapid.IntRange(1, 5000).Draw(r, "total")
		shares := Shares(total, speeds)
		var sum int
		var all float64
		for i, share := range shares {
			sum += share
			all += speeds[i]
			if share < 1 {
				r.Fatalf("%d samples for peer %d", share, i)
			}
		}
		want := max(total, len(speeds))
		if sum != want {
			r.Fatalf("shares %v add up to %d, want %d", shares, sum, want)
		}
		for i, share := range shares {
			if exact := float64(want) * speeds[i] / all; float64(share) > max(exact+1, 1) {
				r.Fatalf("peer %d has %d of %d, its exact share is %g: %v", i, share, want, exact, shares)
			}
		}
		if again := Shares(total, speeds); !slices.Equal(again, shares) {
			r.Fatalf("%v, then %v", shares, again)
		}
	})
}

func TestSpeedIsOfComputationAlone(t *testing.T) {
	var s speedometer
	now := time.Duration(0)
	for range 100 {
		s.began(now)
		now += 500 * time.Millisecond
		s.done(now, 50)
		now += time.Hour // waiting for the others
	}
	if math.Abs(s.value-100) > 1e-6 {
		t.Errorf("%g samples a second, want 100", s.value)
	}
	s.began(now)
	s.done(now, 50) // no time has passed
	s.done(now+1, 50)
	if math.Abs(s.value-100) > 1e-6 {
		t.Errorf("what cannot be measured changes the speed to %g", s.value)
	}
}
