package peer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// mixedModel has values that are exchanged, values that are not, and frozen ones.
func mixedModel(t *testing.T) *tensor.Params {
	t.Helper()
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "shared", Shape: []int{4}},
		tensor.Spec{Name: "local", Shape: []int{4}, Sharing: tensor.Local},
		tensor.Spec{Name: "frozen", Shape: []int{4}, Sharing: tensor.Frozen},
	)
	if err != nil {
		t.Fatal(err)
	}
	return tensor.NewParams(layout)
}

// TestStepsOfAnyLengthLeaveAFiniteModel: a step that would leave the model infinite, or
// such that nobody would take it, is refused whole, as often as it comes.
func TestStepsOfAnyLengthLeaveAFiniteModel(t *testing.T) {
	const huge = 3e38
	for name, c := range map[string]struct {
		at      []int
		value   float32
		applied int // of four times the same
	}{
		"exchanged":     {[]int{0}, huge, 0},
		"never sent":    {[]int{5}, huge, 1},
		"many":          {[]int{0, 1, 2, 3, 4, 5, 6, 7}, huge, 0},
		"of both signs": {[]int{5, 6}, -2e38, 1},
		"frozen":        {[]int{9}, huge, 4},
		"a model's":     {[]int{0, 1, 2, 3, 4, 5, 6, 7}, 1e4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := startAlone(t, func(config *peer.Config) { config.Params = mixedModel(t) })
			delta, before, after := make(tensor.Vector, 12), make(tensor.Vector, 12), make(tensor.Vector, 12)
			for _, i := range c.at {
				delta[i] = c.value
			}
			for n := range 4 {
				p.Snapshot(before, 0)
				err := p.Apply(t.Context(), delta, peer.Result{})
				p.Snapshot(after, 0)
				switch refused := n >= c.applied; {
				case !tensor.Finite(after):
					t.Fatalf("step %d leaves %v, error %v", n+1, after, err)
				case refused && (!errors.Is(err, optim.ErrNotFinite) || !slices.Equal(before, after)):
					t.Errorf("step %d: error %v, and %v became %v", n+1, err, before, after)
				case !refused && err != nil:
					t.Errorf("step %d: %v", n+1, err)
				}
			}
			if steps := p.Stats().Steps; steps != uint64(c.applied) {
				t.Errorf("%d steps are counted, want %d", steps, c.applied)
			}
		})
	}
}

// TestGrowingStepsNeverLeaveAnInfiniteModel: each step is the longest that is taken.
func TestGrowingStepsNeverLeaveAnInfiniteModel(t *testing.T) {
	p := startAlone(t, func(config *peer.Config) { config.Params = mixedModel(t) })
	delta, model := make(tensor.Vector, 12), make(tensor.Vector, 12)
	refused := 0
	for delta[0] = 1; refused < 200; {
		if p.Apply(t.Context(), delta, peer.Result{}) != nil {
			refused++
			delta[0] /= 2
		} else {
			delta[0] = min(3*delta[0], 3e38)
		}
		if p.Snapshot(model, 0); !tensor.Finite(model) {
			t.Fatalf("the model is %v", model)
		}
	}
}

// TestParamsWithoutALayoutAreRefused: the zero Params is a mistake that Start names, as none at all is.
func TestParamsWithoutALayoutAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := inMemory(t, memnet.New(memnet.Config{}), "only", "digits")
		p, err := peer.Start(t.Context(), peer.Config{Run: "digits", Params: &tensor.Params{}, Network: network})
		if !errors.Is(err, peer.ErrConfig) || !strings.Contains(err.Error(), "Params") || !strings.Contains(err.Error(), "tensor.NewParams") {
			t.Errorf("%v, %v", p, err)
		}
	})
}
