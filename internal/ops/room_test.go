package ops_test

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/internal/ops"
	"github.com/seed-97356399/murmuration/tensor"
)

// step is one operation on a few pictures, for what all of them have in common.
type step struct {
	name string
	do   func()
}

// layer is the type or function of the step.
func (s step) layer() string {
	name, _, _ := strings.Cut(s.name, ".")
	return name
}

// steps are all operations, on n pictures of shape s.
func steps(n int, s ops.Shape, outs int) []step {
	random := seeded(7)
	var r room
	vector := func(n int) tensor.Vector { return r.normal(random, n) }
	conv, halved := ops.NewConvolution(s, outs, 1), ops.NewConvolution(s, outs, 2)
	deep, deepHalved := ops.NewDepthwise(s, 1), ops.NewDepthwise(s, 2)
	pool, norm := ops.NewMaxPool(s), ops.NewGroupNorm(s, 1)
	x, y, x2 := vector(n*s.Len()), vector(n*conv.Out().Len()), vector(n*s.Len())
	y2, pooled := y[:n*halved.Out().Len()], vector(n*pool.Out().Len())
	w, d, row := vector(conv.WeightLen()), vector(deep.WeightLen()), vector(s.Channels)
	row2, stats, places := vector(s.Channels), vector(n*norm.StatsLen()), make([]byte, n*pool.PlacesLen())
	means, labels := vector(n*s.Channels), make(tensor.Vector, n)
	deepOut := x2[:n*deepHalved.Out().Len()]
	return []step{
		{"Convolution.Load", func() { conv.Load(w); halved.Load(w) }},
		{"Convolution.Forward", func() { conv.Forward(y, x) }},
		{"Convolution.Forward, stride 2", func() { halved.Forward(y2, x) }},
		{"Convolution.AddWeightGradient", func() { conv.AddWeightGradient(w, x, y) }},
		{"Convolution.AddWeightGradient, stride 2", func() { halved.AddWeightGradient(w, x, y2) }},
		{"Convolution.InputGradient", func() { conv.InputGradient(x2, y) }},
		{"Convolution.InputGradient, stride 2", func() { halved.InputGradient(x2, y2) }},
		{"Depthwise.Forward", func() { deep.Forward(x2, x, d) }},
		{"Depthwise.Forward, stride 2", func() { deepHalved.Forward(deepOut, x, d) }},
		{"Depthwise.AddWeightGradient", func() { deep.AddWeightGradient(d, x, x2) }},
		{"Depthwise.AddWeightGradient, stride 2", func() { deepHalved.AddWeightGradient(d, x, deepOut) }},
		{"Depthwise.InputGradient", func() { deep.InputGradient(x2, x, d) }},
		{"Depthwise.InputGradient, stride 2", func() { deepHalved.InputGradient(x, deepOut, d) }},
		{"MaxPool.Forward", func() { pool.Forward(pooled, places, x) }},
		{"MaxPool.Gradient", func() { pool.Gradient(x2, places, pooled) }},
		{"GroupNorm.Forward", func() { norm.Forward(x2, stats, x, row, row2) }},
		{"GroupNorm.Gradient", func() { norm.Gradient(x2, row, row2, stats, x, x2, row) }},
		{"GroupNorm.ForwardRectify", func() { norm.ForwardRectify(x2, stats, x, row, row2) }},
		{"GroupNorm.GradientRectify", func() { norm.GradientRectify(x2, row, row2, stats, x, x, x2, row) }},
		{"AddRows", func() { ops.AddRows(x, row) }},
		{"AddRowsRectify", func() { ops.AddRowsRectify(x, row) }},
		{"AddSumRows", func() { ops.AddSumRows(row, x) }},
		{"Rectify", func() { ops.Rectify(x2) }},
		{"RectifyGradient", func() { ops.RectifyGradient(x2, x) }},
		{"GlobalAverage", func() { ops.GlobalAverage(means, x, s) }},
		{"GlobalAverageGradient", func() { ops.GlobalAverageGradient(x2, means, s) }},
		{"SoftmaxCrossEntropy", func() { ops.SoftmaxCrossEntropy(means, means, labels, 1) }},
	}
}

func TestNothingAllocates(t *testing.T) {
	for _, s := range steps(3, ops.Shape{Height: 7, Width: 5, Channels: 19}, 20) {
		s.do()
		if n := testing.AllocsPerRun(5, s.do); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

// TestWrongLengthsPanic, and say whose they are.
func TestWrongLengthsPanic(t *testing.T) {
	s := ops.Shape{Height: 4, Width: 4, Channels: 2}
	v := func(n int) tensor.Vector { return make(tensor.Vector, n) }
	conv, deep, pool, norm := ops.NewConvolution(s, 3, 1), ops.NewDepthwise(s, 1), ops.NewMaxPool(s), ops.NewGroupNorm(s, 2)
	for name, do := range map[string]func(){
		"Convolution.Load":                func() { conv.Load(v(53)) },
		"Convolution.Forward":             func() { conv.Forward(v(48), v(33)) },
		"Convolution.InputGradient":       func() { conv.InputGradient(v(32), v(47)) },
		"Convolution.AddWeightGradient":   func() { conv.AddWeightGradient(v(54), v(64), v(48)) },
		"Depthwise.Forward":               func() { deep.Forward(v(32), v(32), v(17)) },
		"Depthwise.InputGradient":         func() { deep.InputGradient(v(32), v(64), v(18)) },
		"Depthwise.AddWeightGradient":     func() { deep.AddWeightGradient(v(16), v(32), v(32)) },
		"MaxPool.Forward":                 func() { pool.Forward(v(8), make([]byte, 7), v(32)) },
		"MaxPool.Gradient":                func() { pool.Gradient(v(32), make([]byte, 8), v(9)) },
		"GroupNorm.Forward":               func() { norm.Forward(v(32), v(3), v(32), v(2), v(2)) },
		"GroupNorm.GradientRectify":       func() { norm.GradientRectify(v(32), v(2), v(2), v(4), v(32), v(31), v(32), v(2)) },
		"AddRows":                         func() { ops.AddRows(v(5), v(2)) },
		"AddSumRows":                      func() { ops.AddSumRows(v(0), v(2)) },
		"RectifyGradient":                 func() { ops.RectifyGradient(v(5), v(4)) },
		"GlobalAverage":                   func() { ops.GlobalAverage(v(3), v(32), s) },
		"SoftmaxCrossEntropy":             func() { ops.SoftmaxCrossEntropy(v(5), v(5), v(2), 1) },
		"NewConvolution: the stride":      func() { ops.NewConvolution(s, 1, 3) },
		"NewConvolution of pictures":      func() { ops.NewConvolution(s, 0, 1) },
		"NewMaxPool of pictures":          func() { ops.NewMaxPool(ops.Shape{Height: 1, Width: 4, Channels: 1}) },
		"NewGroupNorm of 2 channels in 3": func() { ops.NewGroupNorm(s, 3) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.HasPrefix(said, "ops: "+name) {
					t.Errorf("%s: panic %q", name, said)
				}
			}()
			do()
		}()
	}
}
