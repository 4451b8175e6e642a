package replica

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestDriftIsHowFarASliceHasMoved: exactly for short slices, and about for long ones.
func TestDriftIsHowFarASliceHasMoved(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for _, n := range []int{1, 2, 3, 255, driftSample, driftSample + 1, 2*driftSample - 1, 1000, 32 << 10} {
		before, after := make(tensor.Vector, n), make(tensor.Vector, n)
		for i := range before {
			before[i] = rng.Float32()
			after[i] = before[i] + float32(rng.NormFloat64())
		}
		d := newDrift(before)
		if got := d.moved(before); got != 0 {
			t.Errorf("%d values: unmoved, the drift is %g", n, got)
		}
		want, slack := math.Sqrt(tensor.SquaredDistance(before, after)), 1e-9
		if n > driftSample {
			slack = 0.25
		}
		if got := d.moved(after); math.Abs(got-want) > slack*want {
			t.Errorf("%d values: the drift is %g, want %g", n, got, want)
		}
		if d.mark(after, nil); d.moved(after) != 0 {
			t.Errorf("%d values: the drift is %g after a mark", n, d.moved(after))
		}
	}
}

// TestDriftSeesEveryColumn: of a matrix as wide as the stride, of which only one
// column learns, the drift sees that column.
func TestDriftSeesEveryColumn(t *testing.T) {
	const width, rows = 128, driftSample
	for column := range width {
		own := make(tensor.Vector, width*rows)
		d := newDrift(own)
		for row := range rows {
			own[row*width+column] = 1
		}
		if d.moved(own) == 0 {
			t.Errorf("column %d has moved, and the drift is 0", column)
		}
	}
}
