package tensor

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// benchShape is a product to time. Rows of a that overlap have a stride.
type benchShape struct {
	m, n, k        int
	transA, transB bool
	stride         int
	beta           float32
}

func (s benchShape) String() string {
	name := fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k)
	for text, is := range map[string]bool{"-At": s.transA, "-Bt": s.transB} {
		if is {
			name += text
		}
	}
	if s.stride > 0 {
		name += fmt.Sprintf("-stride%d", s.stride)
	}
	return name
}

// benchShapes are large products, those of a step of a 784-256-10 network with
// batches of 64, of convolutions over rows of an image, and of 1×1 convolutions.
var benchShapes = []benchShape{
	{m: 1024, n: 1024, k: 1024},
	{m: 512, n: 256, k: 784},
	{m: 64, n: 256, k: 784},
	{m: 784, n: 256, k: 64, transA: true},
	{m: 64, n: 784, k: 256, transB: true},
	{m: 64, n: 10, k: 256},
	{m: 256, n: 10, k: 64, transA: true},
	{m: 64, n: 256, k: 10, transB: true},
	{m: 800, n: 32, k: 48, stride: 16, beta: 1},
	{m: 48, n: 32, k: 800, stride: 16, transA: true, beta: 1},
	{m: 800, n: 16, k: 3, stride: 1, beta: 1},
	{m: 65536, n: 16, k: 16},
	{m: 16384, n: 64, k: 64},
	{m: 4096, n: 256, k: 256},
	{m: 64, n: 64, k: 16384, transA: true},
	{m: 1, n: 256, k: 784},
}

// BenchmarkMatMul times products beside a loop that only multiplies and adds in
// registers, and beside gonum on one processor, in turns. It gives the median
// rate, and the medians of its ratios to the loop's rate ("peaks") and to gonum's.
func BenchmarkMatMul(b *testing.B) {
	for _, s := range benchShapes {
		b.Run(s.String(), s.run)
	}
}

func (s benchShape) run(b *testing.B) {
	const work, workGonum, loop = 30e6, 3e6, 1 << 15
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	mA, mB, c := s.operand(s.m, s.k, s.transA, s.stride), s.operand(s.k, s.n, s.transB, 0), s.operand(s.m, s.n, false, 0)
	operations := 2 * float64(s.m) * float64(s.n) * float64(s.k)
	repeat := func(total float64, do func()) float64 {
		n := max(1, int(total/operations))
		start := time.Now()
		for range n {
			do()
		}
		return operations * float64(n) / float64(time.Since(start).Nanoseconds())
	}
	var multiplier Multiplier
	const rounds = 1 << 12 // for which there is room before lists grow
	rates, peaks, gonums := make([]float64, 0, rounds), make([]float64, 0, rounds), make([]float64, 0, rounds)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		peak := MultiplyAddPeak(loop)
		peak /= float64(time.Since(start).Nanoseconds())
		ours := repeat(work, func() { multiplier.MatMul(c, 1, mA, mB, s.beta) })
		rates, peaks = append(rates, ours), append(peaks, ours/peak)
		if s.stride == 0 { // gonum takes no rows that overlap
			gonums = append(gonums, ours/repeat(workGonum, func() { s.gonum(c, mA, mB) }))
		}
		clear(c.Data)
	}
	for unit, list := range map[string][]float64{"GFLOP/s": rates, "peaks": peaks, "gonums": gonums} {
		if slices.Sort(list); len(list) > 0 {
			b.ReportMetric(list[len(list)/2], unit)
		}
	}
}

func (s benchShape) gonum(c, a, b Matrix) {
	trans := map[bool]blas.Transpose{false: blas.NoTrans, true: blas.Trans}
	gonum.Implementation{}.Sgemm(trans[s.transA], trans[s.transB], s.m, s.n, s.k,
		1, a.Data, a.Stride, b.Data, b.Stride, s.beta, c.Data, c.Stride)
}

func (s benchShape) operand(rows, cols int, transposed bool, stride int) Matrix {
	random := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	m := Matrix{Rows: rows, Cols: cols, Stride: stride, transposed: transposed}
	count, length := m.lines()
	if stride == 0 {
		m.Stride = length
	}
	m.Data = make(Vector, (count-1)*m.Stride+length)
	for i := range m.Data {
		m.Data[i] = float32(random.NormFloat64())
	}
	return m
}
