package bench

import (
	"fmt"
	"math"
	"runtime"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/examples/gossipnode/host"
	"github.com/seed-97356399/murmuration/tensor"
)

// matmulResult is what bench matmul has to tell.
type matmulResult struct {
	Products     []productFigure `json:"products"`
	Instructions string          `json:"instructions"`
	Rounds       int             `json:"rounds"`
	GOMAXPROCS   int             `json:"gomaxprocs"`
	CPU          string          `json:"cpu"`
}

// productFigure is one product.
type productFigure struct {
	M            int     `json:"m"`
	N            int     `json:"n"`
	K            int     `json:"k"`
	Transposed   string  `json:"transposed"` // nn, tn or nt, as in BLAS
	GFLOPS       float64 `json:"gflops"`
	PeakGFLOPS   float64 `json:"peak_gflops"`
	ShareOfPeak  float64 `json:"share_of_peak"`
	GonumGFLOPS  float64 `json:"gonum_gflops"`
	RatioToGonum float64 `json:"ratio_to_gonum"`
	Error        float64 `json:"error"`
}

// measure measures every shape on one core: GOMAXPROCS=1 keeps gonum's goroutines on
// it.
func (s matmulSettings) measure(shapes []matmulShape) matmulResult {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	total := matmulResult{Instructions: tensor.Instructions(), Rounds: s.rounds, GOMAXPROCS: runtime.GOMAXPROCS(0), CPU: host.Processor()}
	for _, shape := range shapes {
		total.Products = append(total.Products, newProduct(shape, s.seed).compare(s.rounds))
	}
	return total
}

// product is a shape with its matrices as they lie in memory.
type product struct {
	shape   matmulShape
	a, b, c blas32.General
	room    tensor.Multiplier
}

func newProduct(shape matmulShape, seed uint64) *product {
	random := func(rows, cols int, transposed bool, stream uint64) blas32.General {
		if transposed {
			rows, cols = cols, rows
		}
		v := make(tensor.Vector, rows*cols)
		fillValues(v, seed, stream)
		return blasMatrix(rows, cols, v)
	}
	return &product{
		shape: shape,
		a:     random(shape.m, shape.k, shape.transA, 1),
		b:     random(shape.k, shape.n, shape.transB, 2),
		c:     random(shape.m, shape.n, false, 3),
	}
}

// ours is the product by package tensor.
func (p *product) ours() {
	view := func(g blas32.General, transposed bool) tensor.Matrix {
		m := tensor.NewMatrix(g.Rows, g.Cols, g.Data)
		if transposed {
			return m.T()
		}
		return m
	}
	p.room.MatMul(view(p.c, false), 1, view(p.a, p.shape.transA), view(p.b, p.shape.transB), 0)
}

// gonums is the product by gonum.
func (p *product) gonums() {
	transposed := map[bool]blas.Transpose{false: blas.NoTrans, true: blas.Trans}
	blas32.Gemm(transposed[p.shape.transA], transposed[p.shape.transB], 1, p.a, p.b, 0, p.c)
}

// compare measures the product, the peak and gonum in turn.
func (p *product) compare(rounds int) productFigure {
	const giga = 1e9
	var peakRate float64
	none := func() {}
	peak := newContender(func() { peakRate = tensor.MultiplyAddPeak(peakIterations) }, none)
	ours, gonum := newContender(p.ours, none), newContender(p.gonums, none)
	runtime.GC() // no sample should pay for what went before
	for range rounds {
		peak.sample()
		ours.sample()
		gonum.sample()
	}
	p.ours()
	oursRates, peakRates := ours.rates(p.shape.operations()/giga), peak.rates(peakRate/giga)
	return productFigure{
		M: p.shape.m, N: p.shape.n, K: p.shape.k, Transposed: p.shape.form(),
		GFLOPS: median(oursRates), PeakGFLOPS: median(peakRates), ShareOfPeak: median(quotients(oursRates, peakRates)),
		GonumGFLOPS: median(gonum.rates(p.shape.operations() / giga)), RatioToGonum: median(quotients(gonum.seconds, ours.seconds)),
		Error: p.error(),
	}
}

// error is the largest difference of c from the product in float64, relative to the
// sum of the magnitudes of what was added.
func (p *product) error() float64 {
	worst := 0.0
	exact, magnitude := make([]float64, p.shape.n), make([]float64, p.shape.n)
	for i := range p.shape.m {
		clear(exact)
		clear(magnitude)
		for l := range p.shape.k {
			left := float64(element(p.a, i, l, p.shape.transA))
			for j := range p.shape.n {
				term := left * float64(element(p.b, l, j, p.shape.transB))
				exact[j] += term
				magnitude[j] += math.Abs(term)
			}
		}
		for j, want := range exact {
			worst = max(worst, math.Abs(float64(p.c.Data[i*p.c.Stride+j])-want)/magnitude[j])
		}
	}
	return worst
}

func element(m blas32.General, i, j int, transposed bool) float32 {
	if transposed {
		i, j = j, i
	}
	return m.Data[i*m.Stride+j]
}

// String is the figures as a table.
func (r matmulResult) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-20s %8s %8s %8s %8s %8s %9s\n", "m×n×k", "GFLOP/s", "peak", "of peak", "gonum", "ratio", "error")
	for _, p := range r.Products {
		what := fmt.Sprintf("%d×%d×%d %s", p.M, p.N, p.K, p.Transposed)
		fmt.Fprintf(&text, "%-20s %8.1f %8.1f %8.3f %8.2f %8.2f %9.1e\n", what, p.GFLOPS, p.PeakGFLOPS, p.ShareOfPeak, p.GonumGFLOPS, p.RatioToGonum, p.Error)
	}
	fmt.Fprintf(&text, "\nMedians of %s in turn, error relative to the magnitudes added. One core of %s, GOMAXPROCS %d, instructions: %s.\n",
		cli.Plural(uint64(r.Rounds), "round"), r.CPU, r.GOMAXPROCS, r.Instructions)
	return text.String()
}
