package peer_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestAccumulate: the mean over the samples of all batches, as one batch of them would have it.
func TestAccumulate(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		batches []peer.Result // whose gradients are 1, 2, 3 and so on
		fails   int           // the batch that fails, from 1
		want    float32
		result  peer.Result
	}{
		"one":             {batches: []peer.Result{{Loss: 7, Samples: 5}}, want: 1, result: peer.Result{Loss: 7, Samples: 5}},
		"alike":           {batches: []peer.Result{{Loss: 1, Samples: 4}, {Loss: 2, Samples: 4}, {Loss: 6, Samples: 4}}, want: 2, result: peer.Result{Loss: 3, Samples: 12}},
		"by their size":   {batches: []peer.Result{{Loss: 4, Samples: 6}, {Loss: 8, Samples: 2}}, want: 1.25, result: peer.Result{Loss: 5, Samples: 8}},
		"of unknown size": {batches: []peer.Result{{Loss: 1}, {Loss: 3}}, want: 1.5, result: peer.Result{Loss: 2}},
		"empty ones":      {batches: []peer.Result{{Empty: true}, {Loss: 4, Samples: 6}, {Empty: true}, {Loss: 8, Samples: 2}}, want: 2.5, result: peer.Result{Loss: 5, Samples: 8}},
		"all empty":       {batches: []peer.Result{{Empty: true}, {Empty: true}}, want: 1, result: peer.Result{Empty: true}},
		"a bad number":    {batches: []peer.Result{{Samples: 2}, {Samples: -1}}, want: 1, result: peer.Result{Samples: -1}},
		"a failure":       {batches: []peer.Result{{Samples: 2}, {Samples: 2}, {Samples: 2}}, fails: 2, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls, at := 0, tensor.Vector{10, 20}
			step := peer.Accumulate(len(c.batches), func(x, grad tensor.Vector) (peer.Result, error) {
				if !slices.Equal(x, at) || !slices.Equal(grad, tensor.Vector{0, 0}) {
					t.Errorf("batch %d is lent %v and %v", calls+1, x, grad)
				}
				calls++
				if calls == c.fails {
					return peer.Result{}, broken
				}
				grad[0], grad[1] = float32(calls), -float32(calls)
				return c.batches[calls-1], nil
			})
			for range 2 { // the second step knows nothing of the first
				grad := make(tensor.Vector, 2)
				calls = 0
				result, err := step(at, grad)
				if result != c.result || errors.Is(err, broken) != (c.fails > 0) {
					t.Fatalf("%+v, error %v", result, err)
				}
				if grad[0] != c.want || grad[1] != -c.want {
					t.Errorf("gradient %v, want %v", grad, c.want)
				}
			}
		})
	}
	step := peer.Accumulate(3, func(_, grad tensor.Vector) (peer.Result, error) {
		grad[0] = 1
		return peer.Result{Loss: math.Pi, Samples: 1}, nil
	})
	x, grad := make(tensor.Vector, 100), make(tensor.Vector, 100)
	if n := testing.AllocsPerRun(10, func() { _, _ = step(x, grad) }); n != 0 {
		t.Errorf("%g allocations a step", n)
	}
}
