package coding

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// TestPlan: of two joint layers, one has a quarter of its slices quantized, evenly spread.
func TestPlan(t *testing.T) {
	int8, raw, bf16 := mustCodec(t, int8Name), mustCodec(t, rawName), mustCodec(t, bf16Name)
	plan := Plan{
		{Codec: int8, Exact: raw, Proportion: 25, Priority: 2},
		{Codec: int8, Exact: bf16, Proportion: 0},
	}
	quantized := 0
	for turn := range 100 {
		if plan.Codec(0, turn) == int8 {
			quantized++
		}
		if c := plan.Codec(1, turn); c != bf16 {
			t.Fatalf("slice %d of the second is coded by %s", turn, c.Name)
		}
		if ideal := float64(turn+1) / 4; float64(quantized) < ideal-1 || float64(quantized) > ideal {
			t.Fatalf("%d of the first %d slices are quantized", quantized, turn+1)
		}
	}
	if got, want := plan.Bits(0), 0.25*(8+8.0*4/BlockLen)+0.75*32; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v bits, want %v", got, want)
	}
	if plan.Priority(0) != 2 || plan.Priority(1) != 0 || fmt.Sprint(plan.Codecs()) != "[4 1 2]" {
		t.Errorf("priorities %d and %d, codecs %v", plan.Priority(0), plan.Priority(1), plan.Codecs())
	}
	if got := fmt.Sprint(plan); got != "[int8 for 25 % of the slices, raw for the others, priority 2 bf16]" {
		t.Errorf("it says %q", got)
	}
	if c := Uniform(bf16).Codec(7, 0); c != bf16 {
		t.Errorf("a uniform plan takes %s", c.Name)
	}
}

// TestWhatCodecsHold: values beyond half precision, and differences whose code would be
// infinite.
func TestWhatCodecsHold(t *testing.T) {
	for name, most := range map[string]float32{rawName: math.MaxFloat32, bf16Name: mostStep, int8Name: mostStep, fp16Name: mostHalf, "lattice6+4": mostHalf} {
		codec := mustCodec(t, name)
		above := math.Nextafter32(most, math.MaxFloat32)
		holds := func(x tensor.Vector) (holds bool) {
			if codec.Lattice == (Lattice{}) {
				return codec.Encode(make([]byte, codec.Code.Size(len(x))), x)
			}
			_, holds = codec.EncodeNear(make([]byte, codec.Lattice.MaxSize(len(x))), x, []float32{1}, nil, Normal)
			_, halves := codec.EncodeNear(make([]byte, codec.Lattice.MaxSize(len(x))), x, nil, nil, Halves)
			return holds && halves
		}
		if !holds(tensor.Vector{1, -most}) || name != rawName && (holds(tensor.Vector{above}) || holds(tensor.Vector{1, float32(math.NaN())})) {
			t.Errorf("%s does not hold %v, or holds more", name, most)
		}
	}
	for name, most := range map[string]float32{fp16Name: mostHalf, bf16Name: mostStep} {
		diff := tensor.Vector{2 * most, 1}
		mustCodec(t, name).Fit(diff, 2*float64(most))
		if peak := tensor.MaxAbs(diff); peak > most || peak < 0.99*most {
			t.Errorf("%s: a difference of %v becomes %v", name, 2*most, peak)
		}
	}
}
