package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestProportionQuantized codes a share of the slices by a lattice and the others as
// halves: nothing is lost, and the bytes are those that the formats say.
func TestProportionQuantized(t *testing.T) {
	t.Parallel()
	const apart, off = 0.3, 0.03 // points between the proportions; share of the bytes
	const sliceLen = 4096        // 16 slices, so that half of them is a half
	e, d := extentOf(t, 6), loadDigits(t)
	low, high := 100.0, 0.0
	t.Log(columns)
	for _, percent := range []int{0, 50, 100} {
		r := d.lessons(t, fmt.Sprintf("%d %%", percent), e, lesson{
			pace: averaging.Pace{Every: 4}, sliceLen: sliceLen,
			policy: quant.Policy{Codec: "lattice6+4", Quantized: fmt.Sprint(percent)},
		})
		low, high = min(low, r.accuracy()), max(high, r.accuracy())
		want := exchangeBytes(d.model.Layout(), sliceLen, float64(percent)/100)
		t.Logf("%.0f bytes an exchange, %.0f by the formulas", r.bytes(), want)
		if wrong := r.bytes()/want - 1; math.Abs(wrong) > off {
			t.Errorf("%d %% quantized: an exchange takes %.0f bytes, %+.1f %% of the %.0f by the formulas", percent, r.bytes(), 100*wrong, want)
		}
	}
	if high-low > apart+e.slack {
		t.Errorf("accuracies are %.2f points apart, at most %.1f", high-low, apart)
	}
}

// exchangeBytes are those of an exchange, there and back, in which a share of the
// slices of weights travels by lattice6+4, and the rest as halves: by docs/CODECS.md and
// docs/WIRE.md, without what opens the exchange and closes it.
func exchangeBytes(layout *tensor.Layout, sliceLen int, share float64) float64 {
	const block, frames = coding.BlockLen, 2 * (wire.HeaderSize + wire.InfoSize)
	blocks := func(n int) int { return (n + block - 1) / block }
	total := 0.0
	for _, layer := range coding.JointLayers(layout) {
		for _, segment := range layer.Segments {
			for at := 0; at < segment.Len; at += sliceLen {
				n := min(sliceLen, segment.Len-at)
				halves := float64(2 * 2 * n)
				lattice := float64(6*n)/8 + float64(8*blocks(n)) + float64(4*n)/8 + float64(4*blocks(n)) + float64((blocks(n)+7)/8)
				if layer.Class == coding.Scales {
					lattice = halves
				}
				total += frames + share*lattice + (1-share)*halves
				if share > 0 {
					total += float64(blocks(n)) // its range
				}
			}
		}
	}
	return total
}
