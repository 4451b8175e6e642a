package replica_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// denseAveragers have some matrices, of which two follow each other, and biases.
func denseAveragers(t tester, n, sliceLen int) []*averager {
	t.Helper()
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "a.weight", Shape: []int{40, 90}},
		tensor.Spec{Name: "a.bias", Shape: []int{40}, Kind: tensor.Bias},
		tensor.Spec{Name: "fixed", Shape: []int{3}, Sharing: tensor.Frozen},
		tensor.Spec{Name: "b.weight", Shape: []int{37, 41}},
		tensor.Spec{Name: "c.weight", Shape: []int{10, 37}},
		tensor.Spec{Name: "c.bias", Shape: []int{10}, Kind: tensor.Bias},
	)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*averager, n)
	for i := range all {
		all[i] = newAverager(t, tensor.NewParams(layout), sliceLen)
	}
	return all
}

// putFactored gives the averager a gradient over the rows of a batch, and the factors of its matrices.
func (a *averager) putFactored(t tester, rng *rand.Rand, rank int) {
	t.Helper()
	random := func(n int) tensor.Vector {
		v := make(tensor.Vector, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	gradient := random(a.Len())
	a.UseGradients().Forget()
	var mul tensor.Multiplier
	for i := range a.Layout().Count() {
		at := a.Layout().At(i)
		if len(at.Shape) != 2 {
			continue
		}
		inputs, errors := random(rank*at.Shape[1]), random(rank*at.Shape[0])
		mul.MatMul(tensor.NewMatrix(at.Shape[0], at.Shape[1], gradient[at.Offset:][:at.Len]), 1,
			tensor.NewMatrix(rank, at.Shape[0], errors).T(), tensor.NewMatrix(rank, at.Shape[1], inputs), 0)
		half := rank / 2 // in two passes
		a.UseGradients().Put(at.Offset, inputs[:half*at.Shape[1]], errors[:half*at.Shape[0]])
		a.UseGradients().Put(at.Offset, inputs[half*at.Shape[1]:], errors[half*at.Shape[0]:])
	}
	if err := a.PutRange(gradient, 0, len(gradient), float64(rank)); err != nil {
		t.Fatal(err)
	}
}

// push sends a gradient into the sum of another, in parts, and returns the bytes that took.
func (a *averager) push(t tester, to *averager, parts int) (bytes int) {
	t.Helper()
	for part := range parts {
		m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Part: part, Parts: parts}
		if err := errors.Join(a.sender.Begin(terms(t, "raw", 7, m)), to.receiver.Begin(terms(t, "raw", 7, m))); err != nil {
			t.Fatal(err)
		}
		for {
			frame, ok, err := a.sender.Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			bytes += len(frame)
			if err := to.receiver.Part(headerIn(frame), frame[wire.HeaderSize:]); err != nil {
				t.Fatal(err)
			}
		}
		if !to.receiver.Done() {
			t.Fatal("all has been sent, and the transfer is not done")
		}
	}
	return bytes
}

// TestFactorsAreTheGradient: whatever the slices, the parts and the number of rows, a sum of gradients that came in factors is that
// of the gradients themselves, but for rounding, with the same weights, and takes no more bytes but for headers.
func TestFactorsAreTheGradient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sliceLen, parts := rapid.IntRange(1, 4000).Draw(t, "slices"), rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "parts")
		rank, workers := rapid.IntRange(1, 60).Draw(t, "rank"), rapid.IntRange(1, 3).Draw(t, "workers")
		all := denseAveragers(t, workers+2, max(sliceLen, 64))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		factored, dense := all[0], all[1]
		for _, a := range all[2:] {
			a.putFactored(t, rng, rank)
			few := a.push(t, factored, parts)
			a.UseGradients().Forget()
			many := a.push(t, dense, parts)
			if few > many+(wire.HeaderSize+wire.PartInfoSize)*100 {
				t.Fatalf("%d bytes of factors for %d of values", few, many)
			}
		}
		got, want := make(tensor.Vector, dense.Len()), make(tensor.Vector, dense.Len())
		if g, w := factored.Drain(got, 0, 1, 0), dense.Drain(want, 0, 1, 0); g != w || w != float64(rank*workers) {
			t.Fatalf("weights of %g and %g", g, w)
		}
		if d := math.Sqrt(tensor.SquaredDistance(got, want)); d > 1e-6*tensor.Norm2(want)*math.Sqrt(float64(rank)) {
			t.Fatalf("%g from the sum of norm %g", d, tensor.Norm2(want))
		}
	})
}

// TestFactorsSaveBytes: of a wide layer, and a batch of few rows, a push takes as many times fewer bytes as there are fewer numbers.
func TestFactorsSaveBytes(t *testing.T) {
	const in, out, rank = 784, 256, 16
	layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{out, in}}, tensor.Spec{Name: "bias", Shape: []int{out}, Kind: tensor.Bias})
	if err != nil {
		t.Fatal(err)
	}
	a, b := newAverager(t, tensor.NewParams(layout), 0), newAverager(t, tensor.NewParams(layout), 0)
	a.putFactored(t, rand.New(rand.NewPCG(1, 1)), rank)
	few := a.push(t, b, 1)
	a.UseGradients().Forget()
	many := a.push(t, b, 1)
	if times, want := float64(many)/float64(few), float64(in*out)/(rank*(in+out)); times < 0.95*want {
		t.Errorf("%d bytes, and %d in factors: %.1f times fewer, want %.1f", many, few, times, want)
	}
}

// TestFactorsOfAnotherGradient: a transfer in whose midst the trainer begins another gradient is over, and sends nothing of both.
func TestFactorsOfAnotherGradient(t *testing.T) {
	a, rng := denseAveragers(t, 1, 1000)[0], rand.New(rand.NewPCG(1, 1))
	a.putFactored(t, rng, 4)
	m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}
	if err := a.sender.Begin(terms(t, "raw", 7, m)); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := a.sender.Next(nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	a.putFactored(t, rng, 4)
	if _, _, err := a.sender.Next(nil); !errors.Is(err, replica.ErrStopped) {
		t.Errorf("error is %v", err)
	}
}

// frameOf is a PART with factors.
func frameOf(form wire.Form, pieces, rank int, values ...float32) []byte {
	info := wire.PartInfo{Weight: 3, Codec: uint8(coding.Raw), Pieces: uint32(pieces), Form: form, Rank: uint16(rank)}
	return tensor.AppendBytes(wire.AppendPartInfo(nil, info), values)
}

// TestReceiverRefusesFactors: factors that no honest worker sends are refused, and change nothing.
func TestReceiverRefusesFactors(t *testing.T) {
	nan := float32(math.NaN())
	long := func(n int, first float32) []float32 { return append([]float32{first}, make([]float32, n-1)...) }
	inputs := frameOf(wire.FormInputs, 4, 4, long(4*90, 1)...)
	gradient := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}
	sum := gradient
	sum.From = collective.Sum
	other := frameOf(wire.FormInputs, 4, 4, long(4*90, 1)...)
	other[12] = uint8(coding.BF16)
	for i, c := range []struct {
		of     collective.Transfer
		before [][]byte
		frame  []byte
		err    error
	}{
		{gradient, nil, frameOf(wire.FormInputs, 1, 28, long(90, 1)...), replica.ErrImplausible}, // 28·(90+40+4) are more than 90·40
		{gradient, nil, frameOf(wire.FormInputs, 1, 65535, long(90, 1)...), replica.ErrImplausible},
		{gradient, nil, frameOf(wire.FormInputs, 5, 4, long(5*90, 1)...), replica.ErrOrder},
		{gradient, nil, frameOf(wire.FormInputs, 1<<30, 4, long(90, 1)...), replica.ErrOrder},
		{gradient, nil, frameOf(wire.FormInputs, 2, 4, long(90, 1)...), coding.ErrSize},
		{gradient, nil, frameOf(wire.FormInputs, 1, 4, long(90, nan)...), replica.ErrImplausible},
		{gradient, nil, other, replica.ErrCodec},
		{sum, nil, inputs, replica.ErrCodec},
		{gradient, [][]byte{inputs}, frameOf(wire.FormInputs, 1, 4, long(90, 1)...), replica.ErrOrder},
		{gradient, [][]byte{inputs}, frameOf(wire.FormInputs, 1, 5, long(90, 1)...), replica.ErrOrder},
		{gradient, nil, frameOf(wire.FormErrors, 1, 4, long(4, 1)...), replica.ErrOrder},
		{gradient, [][]byte{frameOf(wire.FormInputs, 3, 4, long(3*90, 1)...)}, frameOf(wire.FormErrors, 1, 4, long(4, 1)...), replica.ErrOrder},
		{gradient, [][]byte{inputs}, frameOf(wire.FormErrors, 1, 3, long(3, 1)...), replica.ErrOrder},
		{gradient, [][]byte{inputs}, frameOf(wire.FormErrors, 1, 4, long(5, 1)...), coding.ErrSize},
		{gradient, [][]byte{inputs}, frameOf(wire.FormErrors, 1, 4, long(4, nan)...), replica.ErrImplausible},
		{gradient, [][]byte{inputs}, frameOf(wire.FormErrors, 1, 4, long(4, 1e20)...), replica.ErrImplausible},
		{gradient, [][]byte{inputs}, frameOf(wire.FormErrors, 40, 4, long(4, 1)...), replica.ErrOrder},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := denseAveragers(t, 1, 1000)[0]
			if err := b.receiver.Begin(terms(t, "raw", 7, c.of)); err != nil {
				t.Fatal(err)
			}
			header := wire.Header{Type: wire.TypePart, Exchange: 7}
			for _, frame := range c.before {
				if err := b.receiver.Part(header, frame); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.receiver.Part(header, c.frame); !errors.Is(err, c.err) {
				t.Errorf("error is %v, want %v", err, c.err)
			}
			if mean := make(tensor.Vector, b.Len()); b.Drain(mean, 0, 1, 0) != 0 || tensor.Norm2(mean) != 0 {
				t.Error("it has changed the sum")
			}
		})
	}
}

// FuzzFactors takes any bytes in as PARTs of a product, one after the other. What is refused has changed nothing, and what was
// taken in is finite.
func FuzzFactors(f *testing.F) {
	inputs, errors := frameOf(wire.FormInputs, 2, 2, make([]float32, 180)...), frameOf(wire.FormErrors, 1, 2, 1, 2)
	f.Add(inputs, errors)
	f.Add(inputs[:len(inputs)-1], errors)
	f.Add(frameOf(wire.FormInputs, 1, 2, make([]float32, 90)...), errors)
	f.Add(errors, inputs)
	f.Add(inputs, frameOf(wire.FormErrors, 2, 2, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a := denseAveragers(t, 1, 1000)[0]
		m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}
		if err := a.receiver.Begin(terms(t, "raw", 7, m)); err != nil {
			t.Fatal(err)
		}
		next := uint32(0)
		for _, payload := range [][]byte{first, second} {
			before := peekFrames(t, a)
			err := a.receiver.Part(wire.Header{Type: wire.TypePart, Exchange: 7, Slice: next}, payload)
			if err != nil && peekFrames(t, a) != before {
				t.Fatalf("refused with %v, and taken in", err)
			}
			if info, _, bad := wire.SplitPart(payload); err == nil && bad == nil && info.Form != wire.FormInputs {
				next += info.Pieces
			}
		}
		mean := make(tensor.Vector, a.Len())
		if a.Drain(mean, 0, 1, 0); math.IsNaN(tensor.Norm2(mean)) {
			t.Fatal("the mean is no gradient")
		}
	})
}

// BenchmarkPush is what a push of a wide layer costs both sides together, as it is and in factors.
func BenchmarkPush(b *testing.B) {
	for _, c := range []struct{ in, out, rank int }{{784, 256, 16}, {4096, 4096, 64}} {
		layout, err := tensor.NewLayout(tensor.Spec{Name: "weight", Shape: []int{c.out, c.in}})
		if err != nil {
			b.Fatal(err)
		}
		from, to := newAverager(b, tensor.NewParams(layout), 0), newAverager(b, tensor.NewParams(layout), 0)
		from.putFactored(b, rand.New(rand.NewPCG(1, 1)), c.rank)
		for _, factored := range []bool{true, false} {
			if !factored {
				from.UseGradients().Forget()
			}
			b.Run(fmt.Sprintf("%d-%d/factored=%v", c.in, c.out, factored), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					to.Clear(0, 1)
					b.SetBytes(int64(from.push(b, to, 1)))
				}
			})
		}
	}
}
