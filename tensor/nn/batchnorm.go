package nn

import (
	"fmt"
	"math"

	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// BatchNorm gives each channel the mean 0 and the variance 1 over a batch, then scales and
// shifts it (Ioffe and Szegedy, 2015), as torch.nn.BatchNorm1d and 2d. Its parameters are
// weight and bias, and the statistics that a model predicts with: running_mean,
// running_var and num_batches_tracked, of kind Statistic and local to each peer.
//
// All examples of a batch go through the model in one pass. Use GroupNorm if batches are small, or if peers have
// different kinds of data.
func BatchNorm(channels int) Layer { return batchNorm{channels} }

type batchNorm struct{ channels int }

// torch's defaults.
const (
	batchNormEpsilon  = 1e-5
	batchNormMomentum = 0.1 // weight of a batch in the running statistics
)

func (l batchNorm) String() string { return fmt.Sprintf("BatchNorm(%d)", l.channels) }

func (l batchNorm) For(in Shape) (Built, error) {
	if l.channels < 1 || in.Width() != l.channels {
		return Built{}, fmt.Errorf("want %d channels, have %d", l.channels, in.Width())
	}
	n := l.channels
	statistic := func(name string, start float64, shape ...int) Param {
		return Param{tensor.Spec{Name: name, Shape: shape, Kind: tensor.Statistic, Sharing: tensor.Local}, Fill(start)}
	}
	params := append(scaleAndShift(n), statistic("running_mean", 0, n), statistic("running_var", 1, n), statistic("num_batches_tracked", 0))
	return Built{Out: in, Params: params, WholeBatch: true, Make: func(r *Room) Step {
		sums := func() []float64 { return make([]float64, n) }
		return &batchNormStep{
			n: n, y: r.Values(in.Len()), mean: sums(), inverse: sums(), sum: sums(), product: sums(),
			a: make(tensor.Vector, n), b: make(tensor.Vector, n), shift: make(tensor.Vector, n), changes: make(tensor.Vector, 2*n+1),
		}
	}}, nil
}

type batchNormStep struct {
	n             int           // channels
	x             tensor.Vector // of the last Forward
	y             tensor.Vector
	mean, inverse []float64 // mean and 1/deviation of each channel in the last Forward
	sum, product  []float64
	a, b, shift   tensor.Vector // factors of each channel
	changes       tensor.Vector // of the statistics, in the last Forward
}

// Forward implements Step.
func (s *batchNormStep) Forward(p Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	y, scale, shift, running := s.y[:len(x)], w[:s.n], w[s.n:2*s.n], w[2*s.n:]
	if p.Train {
		s.measure(x, running)
	} else {
		for c := range s.n {
			s.mean[c], s.inverse[c] = float64(running[c]), 1/math.Sqrt(float64(running[s.n+c])+batchNormEpsilon)
		}
	}
	for c := range s.n {
		a := float64(s.inverse[c] * float64(scale[c]))
		s.a[c], s.shift[c] = float32(a), float32(float64(shift[c])-float64(s.mean[c]*a))
	}
	kernel.ScaleRows(y, x, s.a, s.shift)
	return y
}

// measure computes the mean and the deviation of each channel of a batch, and the changes of the running statistics,
// whose variance is that of a sample.
func (s *batchNormStep) measure(x, running tensor.Vector) {
	clear(s.sum)
	clear(s.product)
	kernel.SumSquareRows(s.sum, s.product, x)
	count := float64(len(x) / s.n)
	for c := range s.n {
		mean := s.sum[c] / count
		variance := max(s.product[c]/count-float64(mean*mean), 0)
		s.mean[c], s.inverse[c] = mean, 1/math.Sqrt(variance+batchNormEpsilon)
		ofSample := variance * count / max(count-1, 1)
		s.changes[c] = float32(batchNormMomentum * (mean - float64(running[c])))
		s.changes[s.n+c] = float32(batchNormMomentum * (ofSample - float64(running[s.n+c])))
	}
	s.changes[2*s.n] = 1
}

// Backward implements Step.
func (s *batchNormStep) Backward(p Pass, w, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	copy(g[2*s.n:], s.changes)
	clear(s.sum)
	clear(s.product)
	kernel.SumProductRows(s.sum, s.product, e, s.x)
	count := float64(len(e) / s.n)
	for c := range s.n {
		inverse := s.inverse[c]
		normal := inverse * (s.product[c] - float64(s.mean[c]*s.sum[c])) // sum of errors times normalized values
		g[c] += float32(normal)
		g[s.n+c] += float32(s.sum[c])
		a := float64(w[c]) * inverse
		b := -a * inverse * normal / count
		s.a[c], s.b[c] = float32(a), float32(b)
		s.shift[c] = float32(-a*s.sum[c]/count - float64(s.mean[c]*b))
	}
	kernel.CombineRows(e, e, s.x, s.a, s.b, s.shift)
	return e
}
