package ops_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// pass is how many pictures an operation takes at a time, as the models of the
// examples have it; a step is of batch pictures.
const (
	pass  = 8
	batch = 64
)

// BenchmarkConvolutions times the products of the convolutions of "cnn" and of
// "mobilenet-small" in turns with multiply-adds that come from registers and a few
// lines of the innermost cache, and gives the medians in GFLOP/s and of the ratio.
func BenchmarkConvolutions(b *testing.B) {
	random := seeded(3)
	var r room
	for _, c := range []struct {
		in     ops.Shape
		outs   int // 0 for each channel by itself
		stride int
	}{
		{ops.Shape{Height: 28, Width: 28, Channels: 1}, 16, 1},
		{ops.Shape{Height: 14, Width: 14, Channels: 16}, 32, 1},
		{ops.Shape{Height: 32, Width: 32, Channels: 3}, 16, 1},
		{ops.Shape{Height: 32, Width: 32, Channels: 16}, 0, 1},
		{ops.Shape{Height: 32, Width: 32, Channels: 32}, 0, 2},
		{ops.Shape{Height: 16, Width: 16, Channels: 64}, 0, 1},
		{ops.Shape{Height: 8, Width: 8, Channels: 128}, 0, 1},
	} {
		var layer loadable = &loaded{Depthwise: ops.NewDepthwise(c.in, c.stride)}
		products := float64(layer.Out().Len() * 9)
		if c.outs > 0 {
			layer = ops.NewConvolution(c.in, c.outs, c.stride)
			products = float64(layer.Out().Pixels() * layer.WeightLen())
		}
		x, y := r.normal(random, pass*c.in.Len()), r.normal(random, pass*layer.Out().Len())
		w := r.normal(random, layer.WeightLen())
		layer.Load(w)
		name := fmt.Sprintf("%dx%dx%d-%d-%d", c.in.Height, c.in.Width, c.in.Channels, c.outs, c.stride)
		b.Run("forward/"+name, func(b *testing.B) { besidePeak(b, pass*2*products, func() { layer.Forward(y, x) }) })
		b.Run("weights/"+name, func(b *testing.B) {
			besidePeak(b, pass*2*products, func() { layer.AddWeightGradient(w, x, y) })
		})
		b.Run("inputs/"+name, func(b *testing.B) {
			besidePeak(b, pass*2*products, func() { layer.InputGradient(x, y) })
		})
	}
}

// BenchmarkLayers times what moves values rather than multiply them, in turns with a
// copy of the layer's larger side, and gives the medians of both in GB of that side a
// second, and of the ratio.
func BenchmarkLayers(b *testing.B) {
	for _, s := range []ops.Shape{
		{Height: 28, Width: 28, Channels: 16},
		{Height: 14, Width: 14, Channels: 32},
		{Height: 8, Width: 8, Channels: 128},
	} {
		x, to := make(tensor.Vector, pass*s.Len()), make(tensor.Vector, pass*s.Len())
		for _, step := range steps(pass, s, 8) {
			if slices.Contains([]string{"Convolution", "Depthwise", "SoftmaxCrossEntropy"}, step.layer()) {
				continue
			}
			b.Run(fmt.Sprintf("%s/%dx%dx%d", step.name, s.Height, s.Width, s.Channels), func(b *testing.B) {
				beside(b, "GB/s", "copies", 4*float64(len(x)), 4*float64(len(x)), step.do, func() { copy(to, x) })
			})
		}
	}
}

// BenchmarkStep times a training step of "cnn" on 64 pictures without its dense
// layer, as BenchmarkConvolutions does.
func BenchmarkStep(b *testing.B) {
	c := newCNN()
	besidePeak(b, 2*c.products, c.step)
}

// cnn is the convolutions and what is between them of the model "cnn".
type cnn struct {
	conv             [2]*ops.Convolution
	pool             [2]*ops.MaxPool
	w, bias          [2]tensor.Vector
	dw, dbias        [2]tensor.Vector
	sums, out, below [2]tensor.Vector
	places           [2][]byte
	x, e             tensor.Vector
	products         float64 // of a step
}

func newCNN() *cnn {
	random := seeded(4)
	var r room
	c, s := &cnn{}, ops.Shape{Height: 28, Width: 28, Channels: 1}
	c.x = r.normal(random, batch*s.Len())
	for l, outs := range []int{16, 32} {
		c.conv[l] = ops.NewConvolution(s, outs, 1)
		full := c.conv[l].Out()
		c.pool[l] = ops.NewMaxPool(full)
		n := c.conv[l].WeightLen()
		c.w[l], c.dw[l] = r.normal(random, n), r.normal(random, n)
		c.bias[l], c.dbias[l] = r.normal(random, outs), r.normal(random, outs)
		c.sums[l], c.below[l] = r.normal(random, pass*full.Len()), r.normal(random, pass*full.Len())
		s = c.pool[l].Out()
		c.out[l], c.places[l] = r.normal(random, pass*s.Len()), make([]byte, pass*s.Len())
		c.products += batch * float64((2+l)*full.Pixels()*n) // nobody needs the input's gradient
	}
	c.e = r.normal(random, pass*s.Len())
	return c
}

func (c *cnn) step() {
	size := len(c.x) / batch * pass
	for l := range c.conv {
		c.conv[l].Load(c.w[l])
	}
	for from := 0; from < len(c.x); from += size {
		in := [2]tensor.Vector{c.x[from : from+size], c.out[0]}
		for l := range c.conv {
			c.conv[l].Forward(c.sums[l], in[l])
			c.pool[l].Forward(c.out[l], c.places[l], c.sums[l])
			ops.AddRowsRectify(c.out[l], c.bias[l])
		}
		e := c.e
		for l := 1; l >= 0; l-- {
			ops.RectifyGradient(e, c.out[l])
			ops.AddSumRows(c.dbias[l], e)
			c.pool[l].Gradient(c.below[l], c.places[l], e)
			c.conv[l].AddWeightGradient(c.dw[l], in[l], c.below[l])
			if l > 0 {
				e = c.sums[0][:len(c.out[0])]
				c.conv[l].InputGradient(e, c.below[l])
			}
		}
	}
}

// besidePeak is beside multiply-adds of which the operands stay where they are.
func besidePeak(b *testing.B, operations float64, do func()) {
	const taps, channels, pixels = 6, 16, 1 << 13
	w, x, y := make([]float32, 3*taps*channels), make([]float32, taps), make([]float32, channels)
	windows := kernel.Windows{Rows: 1, Cols: pixels, Taps: taps}
	beside(b, "GFLOP/s", "of-peak", operations, 2*3*taps*channels*pixels, do, func() { kernel.ConvolveGradient16(w, x, y, windows) })
}

// beside runs do and other in turns and reports the medians of what each does in a
// nanosecond of the processor, and of their ratio.
func beside(b *testing.B, unit, ratio string, done, otherDone float64, do, other func()) {
	const rounds = 1 << 14 // for which there is room before lists grow
	ours, others, ratios := make([]float64, 0, rounds), make([]float64, 0, rounds), make([]float64, 0, rounds)
	rate := func(done float64, do func()) float64 {
		const least = 200 * time.Microsecond
		start, repeated := busy(), 0.0
		for repeated == 0 || busy()-start < least {
			do()
			repeated++
		}
		return done * repeated / float64((busy() - start).Nanoseconds())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	do()
	for b.Loop() {
		mine, theirs := rate(done, do), rate(otherDone, other)
		ours, others, ratios = append(ours, mine), append(others, theirs), append(ratios, mine/theirs)
	}
	for unit, list := range map[string][]float64{unit: ours, "other-" + unit: others, ratio: ratios} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}
