package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkTwins times what a transformer needs beside the twins in plain Go, in turns, in
// the sizes of a batch: attention over 128 places, rows of 128 values, and 256 classes.
// The rate is that of the first vector's bytes.
func BenchmarkTwins(b *testing.B) {
	const places, width, classes = 128, 128, 256
	random := rand.New(rand.NewPCG(6, 6))
	x, grad, p := logits(random, places*places), logits(random, places*places), logits(random, places*places)
	work, m := make([]float32, places*places), newNorm(random, places, width)
	SoftmaxCausal(p, places, 0, 0.1)
	rowKernels := func(v rowVariant) map[string]func() {
		return map[string]func(){
			"SoftmaxCausal":         func() { v.softmaxRows(work, nil, places, places, 1, 0.1, 1) },
			"SoftmaxCausalGradient": func() { v.softmaxRowsGradient(work, p, places, places, 1, 0.1) },
			"SoftmaxWhole":          func() { v.softmaxRows(work, nil, len(x)/classes, classes, classes, 1, 1) },
			"LayerNorm": func() {
				v.layerNorm(work, m.mean, m.inverse, m.x, m.scale, m.shift, testEpsilon, places)
			},
			"LayerNormGradient": func() {
				v.layerNormSums(m.scaleGrad, m.shiftGrad, m.mean, m.inverse, m.grad, m.x, places)
				v.layerNormGradient(work, m.mean, m.inverse, m.grad, m.x, m.scale, places)
			},
		}
	}
	curves := func(v variant) map[string]func() {
		return map[string]func(){
			"Exp":          func() { v.exp(work, x) },
			"GELU":         func() { v.gelu(work, x) },
			"GELUGradient": func() { v.geluGradient(work, x) },
			"SiLU":         func() { v.silu(work, x) },
			"SiLUGradient": func() { v.siluGradient(work, x) },
			"Sigmoid":      func() { v.sigmoid(work, x) },
			"Tanh":         func() { v.tanh(work, x) },
		}
	}
	for _, set := range []struct{ chosen, plain map[string]func() }{
		{rowKernels(chosenRows()), rowKernels(plainRows())}, {curves(exported()), curves(plainGo())},
	} {
		for name, chosen := range set.chosen {
			b.Run(name, func(b *testing.B) { besideTwin(b, chosen, set.plain[name], func() { copy(work, grad) }, len(work)) })
		}
	}
}

// besideTwin takes turns, and gives medians; prepare is not timed.
func besideTwin(b *testing.B, chosen, plain, prepare func(), values int) {
	const rounds = 1 << 14 // for which there is room before lists grow
	fast, ratios := make([]float64, 0, rounds), make([]float64, 0, rounds)
	nanoseconds := func(do func()) float64 {
		prepare()
		start := time.Now()
		do()
		return float64(time.Since(start).Nanoseconds())
	}
	b.ReportAllocs()
	for b.Loop() {
		ours, twin := nanoseconds(chosen), nanoseconds(plain)
		fast, ratios = append(fast, float64(4*values)/ours), append(ratios, twin/ours)
	}
	for unit, list := range map[string][]float64{"GB/s": fast, "twins": ratios} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2], unit)
	}
}
