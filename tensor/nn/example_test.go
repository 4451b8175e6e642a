package nn_test

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/tensor/nn"
)

// A model in five lines, which learns whether a point lies in a circle.
func Example() {
	model, err := nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).Build(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	params, grad := model.Init(1), make(tensor.Vector, model.Layout().Len())
	trainer := model.Trainer(64, nn.CrossEntropy())

	var points tensor.Vector
	var inside []int
	for i := range 64 {
		x, y := float32(i%8)/4-0.875, float32(i/8)/4-0.875
		points = append(points, x, y)
		inside = append(inside, 0)
		if x*x+y*y < 0.5 {
			inside[i] = 1
		}
	}
	for range 2000 { // within peer.Step, where others train the same model
		trainer.Gradient(params.Vector(), grad, points, nn.Labels(nil, inside))
		tensor.Axpy(params.Vector(), -0.5, grad)
	}

	outputs := make(tensor.Vector, 2*2)
	model.Predict(params.Vector(), outputs, tensor.Vector{0.1, 0.1, 0.8, -0.8})
	fmt.Println(nn.Argmax(outputs[:2]) == 1, nn.Argmax(outputs[2:]) == 1)
	// Output: true false
}

// double is a layer of a service's own: it multiplies its inputs with one number.
type double struct{}

func (double) For(in nn.Shape) (nn.Built, error) {
	factor := nn.Param{Spec: tensor.Spec{Name: "factor"}, Start: nn.Fill(2)}
	return nn.Built{Out: in, Params: []nn.Param{factor}, Make: func(r *nn.Room) nn.Step {
		return &doubleStep{y: r.Values(in.Len())}
	}}, nil
}

type doubleStep struct{ x, y tensor.Vector }

func (s *doubleStep) Forward(_ nn.Pass, w, x tensor.Vector) tensor.Vector {
	s.x = x
	y := s.y[:len(x)]
	copy(y, x)
	tensor.Scale(y, w[0])
	return y
}

func (s *doubleStep) Backward(p nn.Pass, w, g, e tensor.Vector) tensor.Vector {
	p.Begin(g)
	for i, v := range e {
		g[0] += v * s.x[i]
	}
	tensor.Scale(e, w[0])
	return e
}

func ExampleLayer() {
	model, err := nn.Sequential(double{}, double{}).Build(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	outputs := make(tensor.Vector, 3)
	model.Predict(model.Init(1).Vector(), outputs, tensor.Vector{1, 2, 3})
	fmt.Println(outputs)
	// Output: [4 8 12]
}
