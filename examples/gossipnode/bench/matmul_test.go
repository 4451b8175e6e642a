package bench

import (
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/cli"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestMatmul shows that every shape is measured with every figure, and is
// right.
func TestMatmul(t *testing.T) {
	code, out, logged := program.Try("bench", "matmul", "--shape", "7x5x9,64x10x33/tn", "--shape", "3x17x20/nt", "--rounds", "3", "--json")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d\n%s", code, logged)
	}
	var r matmulResult
	oneLine(t, []byte(out), &r)
	if len(r.Products) != 3 || r.Rounds != 3 || r.GOMAXPROCS != 1 || r.CPU == "" || r.Instructions != tensor.Instructions() {
		t.Fatalf("%+v", r)
	}
	for i, want := range []productFigure{{M: 7, N: 5, K: 9, Transposed: "nn"}, {M: 64, N: 10, K: 33, Transposed: "tn"}, {M: 3, N: 17, K: 20, Transposed: "nt"}} {
		p := r.Products[i]
		if p.M != want.M || p.N != want.N || p.K != want.K || p.Transposed != want.Transposed {
			t.Errorf("%+v, want the shape of %+v", p, want)
		}
		if !(p.GFLOPS > 0 && p.PeakGFLOPS > 0 && p.ShareOfPeak > 0 && p.GonumGFLOPS > 0 && p.RatioToGonum > 0 && p.Error > 0 && p.Error < 1e-6) {
			t.Errorf("%+v", p)
		}
	}
	for _, line := range []string{"7×5×9 nn", "64×10×33 tn", "3×17×20 nt", r.CPU} {
		if !strings.Contains(logged, line) {
			t.Errorf("no %q in the table:\n%s", line, logged)
		}
	}
}

// TestProductError shows that a wrong element is seen, wherever it is.
func TestProductError(t *testing.T) {
	for _, shape := range []matmulShape{{m: 6, n: 4, k: 8}, {m: 6, n: 4, k: 8, transA: true}, {m: 6, n: 4, k: 8, transB: true}} {
		p := newProduct(shape, 1)
		if p.ours(); p.error() > 1e-6 {
			t.Errorf("%s: error %v", shape.form(), p.error())
		}
		if p.gonums(); p.error() > 1e-6 {
			t.Errorf("%s on gonum: error %v", shape.form(), p.error())
		}
		for i := range p.c.Data {
			was := p.c.Data[i]
			if p.c.Data[i] += 1e-3; p.error() < 1e-4 {
				t.Errorf("%s: element %d is wrong, but the error %v", shape.form(), i, p.error())
			}
			p.c.Data[i] = was
		}
	}
}
