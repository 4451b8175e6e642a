package trainer

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/tensor"
)

// following is an optimizer that notes how the run goes.
type following struct {
	optim.SGD
	courses []optim.Course
}

func (o *following) Follow(c optim.Course) { o.courses = append(o.courses, c) }

// TestOptimizersFollowTheRun: an optimizer that asks is told, before each step, how the run goes and for how many
// steps there was none.
func TestOptimizersFollowTheRun(t *testing.T) {
	o := &following{}
	run := &counted{}
	tr, _ := newTrainer(t, exchanging, o, averaging.Pace{}, run)
	for _, at := range []time.Duration{0, 10, 20, 70} {
		if at == 70 {
			tr.Rest()
		}
		tr.Begin()
		if _, err := tr.Gradient(at*time.Millisecond, 1, 1); err != nil {
			t.Fatal(err)
		}
		run.exchanges++
	}
	want := []optim.Course{{}, {Exchanges: 1}, {Exchanges: 2, Pause: 1}, {Exchanges: 3, Pause: 5}}
	if !slices.Equal(o.courses, want) {
		t.Errorf("it is told %+v, want %+v", o.courses, want)
	}
}

// TestOuterMomentumIsOfOneModel: after the model was replaced, as a latecomer's is by the flock's, nothing of the way to it is carried
// on: the steps are those of a trainer that begins with it.
func TestOuterMomentumIsOfOneModel(t *testing.T) {
	learn := func(before int) tensor.Vector {
		run := &counted{}
		tr, r := newTrainer(t, exchanging, &optim.Outer{Inner: &optim.SGD{}, Every: 2, Momentum: 0.5}, averaging.Pace{}, run)
		steps := func(n int) {
			for range n {
				run.exchanges++
				run.step(t, tr)
			}
		}
		steps(before)
		if err := r.Replace(tensor.Vector{7, 6, 5, 4, 3, 2, 1}); err != nil {
			t.Fatal(err)
		}
		steps(2)
		return contents(r)
	}
	if late, first := learn(5), learn(0); !slices.Equal(late, first) {
		t.Errorf("the model is %v, %v of who began with it", late, first)
	}
}
