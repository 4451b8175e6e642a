package peer_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// newModel is a model of two layers with fixed initial values.
func newModel() *tensor.Params {
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "first", Shape: []int{20, 50}},
		tensor.Spec{Name: "second", Shape: []int{21, 50}},
	)
	if err != nil {
		panic(err) // the specs are constants
	}
	params := tensor.NewParams(layout)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range params.Vector() {
		params.Vector()[i] = rng.Float32() - 0.5
	}
	return params
}

// common is where peer 0 wants all coordinates to be. What each peer wants of its
// own is small beside it, as with models: a peer that is far from all others is
// taken for a liar, and clipped.
const common = 20

// towards is the gradient of half the squared distance to a point of peer i's own:
// all coordinates common+i. The flock's optimum is the mean of the points.
func towards(i int, x, grad tensor.Vector) (peer.Result, error) {
	var loss float64
	for k, v := range x {
		grad[k] = v - float32(common+i)
		loss += float64(grad[k]) * float64(grad[k]) / 2
	}
	return peer.Result{Loss: loss / float64(len(x)), Samples: 1}, nil
}

// atPace makes a gradient take a while, as a real one does.
func atPace(pace time.Duration, gradient peertest.Gradient) peertest.Gradient {
	return func(i int, x, grad tensor.Vector) (peer.Result, error) {
		time.Sleep(pace)
		return gradient(i, x, grad)
	}
}

func shortRun(_ int, c *peer.Config) {
	c.Training.Work = peer.Work{StepsPerPeer: 400}
	c.Training.Exchange.Pace.Every = 1
	c.Training.Schedule = optim.Schedule{Rate: 0.1}
	c.Training.Optimizer = &optim.SGD{}
}

func checkLearned(t *testing.T, flock *peertest.Flock) {
	t.Helper()
	checkLearnedWithin(t, flock, 10)
}

// meanOf is the mean of models.
func meanOf(models []tensor.Vector) []float64 {
	mean := make([]float64, len(models[0]))
	for _, model := range models {
		for i, v := range model {
			mean[i] += float64(v) / float64(len(models))
		}
	}
	return mean
}

// checkLearnedWithin checks that a flock is at its optimum, its models at most so small a
// part apart of what they would be alone.
func checkLearnedWithin(t *testing.T, flock *peertest.Flock, part float64) {
	t.Helper()
	n := len(flock.Peers)
	want := common + float64(n-1)/2
	for i, v := range meanOf(flock.Models()) {
		if math.Abs(v-want) > 0.3 {
			t.Fatalf("value %d of the mean is %g, want %g", i, v, want)
		}
	}
	apart := math.Sqrt(float64(len(flock.Models()[0])) * float64(n*n-1) / 12) // if nobody exchanged
	if spread := flock.Spread(); spread > apart/part {
		t.Errorf("the models are %g apart, alone they would be %g", spread, apart)
	}
	for i, p := range flock.Peers {
		s := p.Stats()
		if s.Exchanges.Completed() == 0 || s.Exchanges.Failed > 0 || s.Members != n || !s.Over {
			t.Errorf("peer %d: %+v", i, s)
		}
	}
}

func TestFlockLearnsInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 8, Params: newModel, Configure: shortRun, Link: memnet.Link{Delay: time.Millisecond}})
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		checkLearned(t, flock)
	})
}

func TestFlockLearnsOverLoopback(t *testing.T) {
	flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Configure: shortRun, Loopback: true})
	flock.Train(t.Context(), atPace(2*time.Millisecond, towards))
	checkLearned(t, flock)
}
