package optim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// muonOracle is the rule for one matrix as it is written, in float64.
type muonOracle struct {
	rows, cols int
	velocity   []float64
}

func (o *muonOracle) step(grad, x tensor.Vector, rate, decay float64) []float64 {
	u, norm := make([]float64, len(grad)), 0.0
	for i, g := range grad {
		o.velocity[i] = 0.95*o.velocity[i] + float64(g)
		u[i] = -(float64(g) + 0.95*o.velocity[i])
		norm += u[i] * u[i]
	}
	for i := range u {
		u[i] /= math.Sqrt(norm)
	}
	for range 5 {
		u = o.polynomial(u)
	}
	for i := range u {
		u[i] = rate * (0.2*math.Sqrt(float64(max(o.rows, o.cols)))*u[i] - decay*float64(x[i]))
	}
	return u
}

// polynomial is 3.4445·u − 4.775·(uuᵀ)u + 2.0315·(uuᵀ)²u.
func (o *muonOracle) polynomial(u []float64) []float64 {
	cube := o.times(u, u)
	fifth := o.times(cube, u)
	sum := make([]float64, len(u))
	for i := range sum {
		sum[i] = 3.4445*u[i] - 4.775*cube[i] + 2.0315*fifth[i]
	}
	return sum
}

// times is a·uᵀ·u.
func (o *muonOracle) times(a, u []float64) []float64 {
	inner, product := make([]float64, o.rows*o.rows), make([]float64, len(u))
	for i := range o.rows {
		for j := range o.rows {
			for k := range o.cols {
				inner[i*o.rows+j] += a[i*o.cols+k] * u[j*o.cols+k]
			}
		}
	}
	for i := range o.rows {
		for k := range o.cols {
			for j := range o.rows {
				product[i*o.cols+k] += inner[i*o.rows+j] * u[j*o.cols+k]
			}
		}
	}
	return product
}

func noise(rng *rand.Rand, n int) tensor.Vector {
	v := make(tensor.Vector, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// TestMuonIsItsRule: matrices, wide and tall, and kernels step as the oracle; a bias and an embedding beside them as by AdamW.
func TestMuonIsItsRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, shape := range [][]int{{3, 7}, {7, 3}, {5, 5}, {1, 6}, {33, 20}, {70, 130}, {135, 70}, {6, 2, 3, 3}} {
		rows, n := shape[0], 1
		for _, length := range shape {
			n *= length
		}
		layout := layoutOf(t,
			tensor.Spec{Name: "table", Shape: []int{2, 2}, Kind: tensor.Embedding},
			tensor.Spec{Name: "weight", Shape: shape}, tensor.Spec{Name: "bias", Shape: []int{3}, Kind: tensor.Bias})
		constants := optim.AdamW{WeightDecay: 0.1, Decayed: optim.Select(layout, optim.Weights)}
		muon, adamw := &optim.Muon{Layout: layout, AdamW: constants}, &constants
		if err := muon.Validate(layout); err != nil {
			t.Fatal(err)
		}
		oracle := &muonOracle{rows: rows, cols: n / rows, velocity: make([]float64, n)}
		for step := range 4 {
			grad, x := noise(rng, layout.Len()), noise(rng, layout.Len())
			want, rest := oracle.step(grad[4:4+n], x[4:4+n], 0.1, 0.1), slices.Clone(grad)
			muon.Delta(grad, x, 0.1)
			adamw.Delta(rest, x, 0.1)
			for i, v := range want {
				if math.Abs(float64(grad[4+i])-v) > 1e-3 {
					t.Fatalf("%v, step %d: value %d changes by %g, want %g", shape, step, i, grad[4+i], v)
				}
			}
			if !slices.Equal(grad[:4], rest[:4]) || !slices.Equal(grad[4+n:], rest[4+n:]) {
				t.Fatalf("%v, step %d: the rest changes by %v and %v, want %v and %v", shape, step, grad[:4], grad[4+n:], rest[:4], rest[4+n:])
			}
		}
	}
}

// TestMuonLeavesOutWhatIsTiny: rows without a gradient, whose momentum decays, do not step at all once it is nothing beside that of others.
func TestMuonLeavesOutWhatIsTiny(t *testing.T) {
	const rows, cols = 4, 8
	layout := layoutOf(t, tensor.Spec{Name: "weight", Shape: []int{rows, cols}})
	grad := noise(rand.New(rand.NewPCG(5, 6)), rows*cols)
	tensor.Scale(grad[cols:2*cols], 1e-14)
	(&optim.Muon{Layout: layout}).Delta(grad, make(tensor.Vector, rows*cols), 1)
	if tensor.MaxAbs(grad[cols:2*cols]) != 0 || tensor.MaxAbs(grad[:cols]) < 0.1 {
		t.Errorf("steps of %v", grad[:2*cols])
	}
}

// TestMuonMovesAllDirectionsAlike: of a gradient whose directions differ by orders of magnitude, the rows of the
// step are orthogonal and about equally long.
func TestMuonMovesAllDirectionsAlike(t *testing.T) {
	const rows, cols = 4, 64
	layout := layoutOf(t, tensor.Spec{Name: "weight", Shape: []int{rows, cols}})
	grad := noise(rand.New(rand.NewPCG(3, 4)), rows*cols)
	for i := range rows {
		tensor.Scale(grad[i*cols:][:cols], float32(math.Pow(4, -float64(i))))
	}
	(&optim.Muon{Layout: layout}).Delta(grad, make(tensor.Vector, rows*cols), 1)
	tensor.Scale(grad, 1/float32(0.2*math.Sqrt(cols)))
	for i := range rows {
		for j := range i + 1 {
			dot := 0.0
			for k := range cols {
				dot += float64(grad[i*cols+k]) * float64(grad[j*cols+k])
			}
			if i == j && (dot < 0.4 || dot > 1.5) || i != j && math.Abs(dot) > 0.4 {
				t.Errorf("rows %d and %d have the product %g", i, j, dot)
			}
		}
	}
}

func TestMuonSettings(t *testing.T) {
	one, other := layoutOf(t, tensor.Spec{Name: "a", Shape: []int{2, 2}}), layoutOf(t, tensor.Spec{Name: "b", Shape: []int{3}})
	err := (&optim.Muon{Layout: one, Momentum: 1, AdamW: optim.AdamW{Beta1: -1}}).Validate(other)
	for _, want := range []string{"Momentum is 1", "Layout is another", "AdamW: Beta1 is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	if err := (&optim.Muon{}).Validate(nil); err == nil || !strings.Contains(err.Error(), "Layout is missing") {
		t.Errorf("without a layout: %v", err)
	}
}

func TestMuonAllocatesNothing(t *testing.T) {
	layout := layoutOf(t, tensor.Spec{Name: "wide", Shape: []int{8, 20}}, tensor.Spec{Name: "tall", Shape: []int{30, 5}}, tensor.Spec{Name: "bias", Shape: []int{5}})
	muon := &optim.Muon{Layout: layout}
	grad, x := noise(rand.New(rand.NewPCG(5, 6)), layout.Len()), make(tensor.Vector, layout.Len())
	if n := testing.AllocsPerRun(20, func() { muon.Delta(grad, x, 0.1) }); n > 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

// TestMuonLeavesFrozenMatricesAlone: for a model with a large frozen base no product is computed.
func TestMuonLeavesFrozenMatricesAlone(t *testing.T) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "base", Shape: []int{1 << 10, 1 << 10}, Sharing: tensor.Frozen})
	if err != nil {
		t.Fatal(err)
	}
	o := &optim.Muon{Layout: layout, AdamW: optim.AdamW{WeightDecay: 0.1}}
	grad, x := make(tensor.Vector, layout.Len()), make(tensor.Vector, layout.Len())
	x[3] = 1
	for range 100 { // 20 s if it were
		o.Delta(grad, x, 0.1)
	}
	if tensor.MaxAbs(grad) != 0 {
		t.Error("a frozen matrix has a step")
	}
}
