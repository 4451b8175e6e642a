package quant

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
)

// TestPlanBits: a plan knows what its codecs take, in the direction that takes more.
func TestPlanBits(t *testing.T) {
	layers := coding.JointLayers(network(t))
	for _, c := range []struct {
		policy Policy
		want   float64 // for convolutions
	}{
		{Policy{Codec: "raw"}, 32},
		{Policy{Codec: "int8"}, 8 + 8.0*4/coding.BlockLen},
		{Policy{Codec: "lattice6+4"}, 6 + 8.0*8/coding.BlockLen},
		{Policy{Codec: "lattice4+8"}, 8 + 8.0*4/coding.BlockLen},
	} {
		plan := c.policy.Plan(layers, coding.Codec{})
		if got := plan.Bits(0); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v bits, want %v", c.policy, got, c.want)
		}
		if got := plan.Bits(1); got < 16 {
			t.Errorf("%+v: %v bits for norms and biases, want at least 16", c.policy, got)
		}
	}
	mixed := coding.Plan{{Codec: coded(t, "int8"), Exact: coded(t, "raw"), Proportion: 25}}
	if got, want := mixed.Bits(0), 0.25*(8+8.0*4/coding.BlockLen)+0.75*32; math.Abs(got-want) > 1e-9 {
		t.Errorf("a quarter of int8: %v bits, want %v", got, want)
	}
}
