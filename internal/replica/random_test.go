package replica_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// damaged is a good payload of which some bytes are others, or the end is missing.
func damaged(t *rapid.T, payload []byte) []byte {
	payload = append([]byte(nil), payload...)
	for range rapid.IntRange(0, 4).Draw(t, "bytes") {
		payload[rapid.IntRange(0, len(payload)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
	}
	if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
		payload = payload[:rapid.IntRange(0, len(payload)).Draw(t, "length")]
	}
	return payload
}

// someValues are values about as a model has them, with now and then an extreme one.
func someValues(t *rapid.T) tensor.Vector {
	values := make(tensor.Vector, sliceLen)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := range values {
		values[i] = rng.Float32()*2 - 1
	}
	scale := rapid.SampledFrom([]float32{1, 1, 1e-3, 1e-40, 1e8, 1e38}).Draw(t, "scale")
	tensor.Scale(values, scale)
	return values
}

// TestWhateverComesMovesNoFartherThanTheBound: of any payload, either nothing is
// applied, or no more than the side's own bound allows; the values stay finite.
func TestWhateverComesMovesNoFartherThanTheBound(t *testing.T) {
	for _, name := range codecs {
		t.Run(name+"/active", func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { anyDifference(t, name) }) })
		t.Run(name+"/passive", func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { anyCode(t, name) }) })
	}
}

func anyDifference(t *rapid.T, name string) {
	a, p := randomSides(t, 5)
	x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Exchange: number})
	before := contents(a.Replica)
	slice := codedSlice(t, x.lanes[0])
	squared := rapid.Float64Range(0, 1e40).Draw(t, "squared")
	payload := damaged(t, diffOf(t, name, squared, someValues(t)))
	err := x.lanes[0].a.Diff(wire.Header{Type: wire.TypeDiff, Exchange: number, Slice: slice}, payload)
	within(t, err, before, contents(a.Replica), sharedRanges[slice])
}

func anyCode(t *rapid.T, name string) {
	a, p := randomSides(t, 5)
	x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Exchange: number})
	before := contents(p.Replica)
	slice := rapid.IntRange(0, sharedSlices-1).Draw(t, "slice")
	bound := rapid.SampledFrom([]float32{1e-45, 1e-6, 1, 1e38, infinity}).Draw(t, "bound")
	payload := damaged(t, codeOf(t, name, bound, someValues(t)))
	_, err := x.lanes[0].p.Code(wire.Header{Type: wire.TypeCode, Exchange: number, Slice: uint32(slice)}, payload)
	if !sameBits(contents(p.Replica), before) {
		t.Fatal("the parameters have changed before an acknowledgement")
	}
	if err == nil {
		if err := x.lanes[0].p.Ack(wire.Header{Type: wire.TypeAck, Exchange: number, Ack: 1}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, err, before, contents(p.Replica), sharedRanges[slice])
}

// within fails if a slice has moved by more than half its bound, the floor, or has
// moved at all although there was an error, or if another has.
func within(t *rapid.T, err error, before, after tensor.Vector, of [2]int) {
	was, is := before[of[0]:of[1]], after[of[0]:of[1]]
	moved, most := math.Sqrt(tensor.SquaredDistance(was, is)), 1.01*floor*math.Sqrt(tensor.SumSquares(was))/2
	if !tensor.Finite(after) || moved > most+1e-6 || (err != nil && moved > 0) {
		t.Fatalf("moved by %g, at most %g; error %v", moved, most, err)
	}
	if !sameBits(before[:of[0]], after[:of[0]]) || !sameBits(before[of[1]:], after[of[1]:]) {
		t.Fatal("another slice has changed")
	}
}
