package peer_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// rival is a strategy other than AD-PSGD. What becomes of them when peers die, freeze, come and go
// is shown of their machines, in package baseline.
type rival struct {
	name    string
	machine func(baseline.Config) (averaging.Machine, error)
}

func rivals() []rival {
	return []rival{
		{"allreduce", func(c baseline.Config) (averaging.Machine, error) { return baseline.NewAllReduce(c) }},
		{"diloco", func(c baseline.Config) (averaging.Machine, error) {
			return baseline.NewDiLoCo(c, baseline.Outer{Every: 3, Rate: 1, Momentum: 0.5})
		}},
		{"dpsgd", func(c baseline.Config) (averaging.Machine, error) { return baseline.NewDPSGD(c) }},
		{"ps-bsp", func(c baseline.Config) (averaging.Machine, error) { return baseline.NewParamServer(c, baseline.BSP{}) }},
		{"ps-bsp of 2", func(c baseline.Config) (averaging.Machine, error) {
			return baseline.NewParamServers(c, make([]topology.PeerID, 2), baseline.BSP{})
		}},
	}
}

const (
	rivalPeers = 4
	rivalSteps = 300 / sparing
	rivalStep  = 10 * time.Millisecond
	// rivalDeadline is what an algorithm in lock-step may wait for a peer.
	rivalDeadline = 4 * time.Second
)

// coordinator is the peer of a flock that coordinates or serves: the first of the view.
func coordinator(t *testing.T, flock *peertest.Flock) int {
	t.Helper()
	ids := flock.IDs()
	var members []topology.Member
	for _, id := range ids {
		members = append(members, topology.Member{ID: id})
	}
	view, err := topology.NewView(members)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Index(ids, view.At(0).ID)
}

// worker is a peer that does not.
func worker(t *testing.T, flock *peertest.Flock) int {
	t.Helper()
	return (coordinator(t, flock) + 1) % len(flock.Peers)
}

// flock is a flock whose peers know each other: whom they take for the first of the view does
// not depend on who was heard of sooner.
func (r rival) flock(t *testing.T, change func(int, *peer.Config)) *peertest.Flock {
	t.Helper()
	flock := peertest.Start(t, peertest.Config{
		Peers: rivalPeers, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Seed: 7,
		Configure: func(i int, c *peer.Config) {
			r.configure(i, c)
			if change != nil {
				change(i, c)
			}
		},
	})
	flock.WaitJoined(rivalPeers)
	synctest.Wait() // their machines have heard of it too
	return flock
}

func (r rival) configure(i int, c *peer.Config) {
	shortRun(i, c)
	c.Training.Work = peer.Work{StepsPerPeer: rivalSteps}
	c.Training.Exchange.SliceLen = 512
	c.Training.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) {
		return r.machine(baseline.Config{Self: config.Self, Deadline: rivalDeadline})
	}
}

// TestRivalsLearn: every strategy makes the steps that there are to make, in about the
// time that they take, and ends without waiting for anybody.
func TestRivalsLearn(t *testing.T) {
	t.Parallel()
	for _, r := range rivals() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { r.learns(t) })
		})
	}
}

func (r rival) learns(t *testing.T) {
	flock := r.flock(t, nil)
	began := time.Now()
	flock.Train(t.Context(), atPace(rivalStep, towards))
	if trained := time.Since(began); trained > rivalSteps*4*rivalStep {
		t.Errorf("%s for %d steps of %s", trained, rivalSteps, rivalStep)
	}
	for i, p := range flock.Peers {
		s := p.Stats()
		if s.Steps < rivalSteps*2/3 || s.Steps > rivalSteps*3/2 || s.FlockSteps > rivalPeers*rivalSteps*21/20 || s.Exchanges.Failed > rivalPeers-1 || s.Quarantined > 0 {
			t.Errorf("peer %d: %+v", i, s)
		}
		if bits := s.Exchanges.BitsPerParameter; bits < 32 || bits > 40 {
			t.Errorf("peer %d: %.2f bits a parameter", i, bits)
		}
	}
	began = time.Now()
	leaveTogether(flock)
	if closed := time.Since(began); closed > 2*time.Second {
		t.Errorf("closing took %s: somebody has waited for somebody", closed)
	}
	models := flock.Models()
	for i, model := range models {
		if want := common + float64(rivalPeers-1)/2; math.Abs(float64(model[3])-want) > 1 {
			t.Errorf("peer %d is at %g, want about %g", i, model[3], want)
		}
		if r.name != "dpsgd" && !slices.Equal(model, models[0]) {
			t.Errorf("peers %d and 0 end with models that are %g apart", i, math.Sqrt(tensor.SquaredDistance(model, models[0])))
		}
	}
}

// leaveTogether closes all peers at once, as processes that end.
func leaveTogether(flock *peertest.Flock) {
	var all sync.WaitGroup
	for _, i := range flock.Living() {
		all.Go(func() { flock.Leave(i) })
	}
	all.Wait()
}

// steppedTogether is how each peer's last step failed, of trainers that go on until one does, or for
// a quarter of the run; who has failed leaves.
func steppedTogether(t *testing.T, flock *peertest.Flock, gradient peertest.Gradient) (said []error) {
	said = make([]error, len(flock.Peers))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i, p := range flock.Peers {
		group.Go(func() {
			for said[i] == nil && p.Stats().Steps < rivalSteps/4 {
				said[i] = p.Step(ctx, func(x, grad tensor.Vector) (peer.Result, error) { return atPace(rivalStep, gradient)(i, x, grad) })
			}
			if said[i] != nil {
				flock.Leave(i)
			}
		})
	}
	group.Wait()
	return said
}

// TestRivalsGoOnWithoutTheirCoordinator: when it is killed another takes its place, and every other trainer makes all
// its steps.
func TestRivalsGoOnWithoutTheirCoordinator(t *testing.T) {
	t.Parallel()
	for _, rival := range rivals() {
		synctest.Test(t, func(t *testing.T) {
			flock := rival.flock(t, nil)
			dead := coordinator(t, flock)
			time.AfterFunc(rivalSteps/10*rivalStep, func() { flock.Crash(dead) })
			for i, err := range steppedTogether(t, flock, towards) {
				if i != dead && err != nil {
					t.Errorf("peer %d: %v", i, err)
				}
			}
		})
	}
}

// TestRivalThatCannotSendIsTold: a trainer whose gradient is too long to be sent hears of it by its
// step, and one whose step takes the model out of all bounds does so too; nobody is blamed.
func TestRivalThatCannotSendIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := rivals()[0].flock(t, nil)
		loud := worker(t, flock)
		for i, err := range steppedTogether(t, flock, func(i int, x, grad tensor.Vector) (peer.Result, error) {
			r, err := towards(i, x, grad)
			if i == loud {
				tensor.Scale(grad, 1e9)
			}
			return r, err
		}) {
			if told := err != nil && strings.Contains(err.Error(), "lower the learning rate"); told != (i == loud) || i != loud && err != nil || flock.Peers[i].Stats().Quarantined > 0 {
				t.Errorf("peer %d cannot send, and peer %d hears %v", loud, i, err)
			}
		}
		leaveTogether(flock)
		fast := rivals()[0].flock(t, func(_ int, c *peer.Config) { c.Training.Schedule = optim.Schedule{Rate: 1e9} })
		for i, err := range steppedTogether(t, fast, towards) {
			if told := errors.Is(err, optim.ErrNotFinite) || errors.Is(err, peer.ErrCoordinatorLost); !told || fast.Peers[i].Stats().Quarantined > 0 {
				t.Errorf("of steps that are too long peer %d hears %v", i, err)
			}
		}
	})
}

// plain is an optimizer without a Reset.
type plain struct{ sgd optim.SGD }

func (o *plain) Delta(grad, x tensor.Vector, rate float64) { o.sgd.Delta(grad, x, rate) }

// TestOptimizerThatCannotForget: of one without a Reset it is said once that models stay apart when
// somebody comes, however many do; and who comes late takes part.
func TestOptimizerThatCannotForget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		flock := rivals()[0].flock(t, func(i int, c *peer.Config) {
			if c.Training.Optimizer = new(plain); i == 0 {
				c.Network.Log = zap.New(core)
			}
		})
		var late sync.WaitGroup
		late.Go(func() {
			for range 2 { // one after the other
				time.Sleep(rivalSteps / 4 * rivalStep)
				p := flock.Add()
				late.Go(func() {
					for p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return atPace(rivalStep, towards)(1, x, grad) }) == nil {
					}
					if s := p.Stats(); s.Steps < rivalSteps/8 || !s.Over {
						t.Errorf("a latecomer: %+v", s)
					}
				})
			}
		})
		flock.Train(t.Context(), atPace(rivalStep, towards))
		late.Wait()
		if said := logged.FilterMessageSnippet("no method Reset").Len(); said != 1 {
			t.Errorf("said %d times", said)
		}
		leaveTogether(flock)
	})
}

// TestAStepThatIsGivenUpWaitingHasHandedItsGradientOver is what the documentation of Step
// says of contexts that end.
func TestAStepThatIsGivenUpWaitingHasHandedItsGradientOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Configure: func(i int, c *peer.Config) {
			rivals()[0].configure(i, c)
			c.Training.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) {
				return baseline.NewAllReduce(baseline.Config{Self: config.Self, Deadline: time.Hour})
			}
		}})
		flock.WaitJoined(2)
		gaveUp, other := flock.Peers[0], flock.Peers[1]
		computed := 0
		gradient := func(x, grad tensor.Vector) (peer.Result, error) {
			computed++
			return towards(0, x, grad)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := gaveUp.Step(ctx, gradient); !errors.Is(err, context.DeadlineExceeded) || gaveUp.Stats().Steps != 0 {
			t.Fatalf("a step that waits for one that does not come: %v, %d steps", err, gaveUp.Stats().Steps)
		}
		var others sync.WaitGroup
		others.Go(func() {
			for range 2 {
				if err := step(t, other, towards); err != nil {
					t.Error(err)
				}
			}
		})
		if err := gaveUp.Step(t.Context(), gradient); err != nil || gaveUp.Stats().Steps != 2 || computed != 2 {
			t.Errorf("the next call: %v, %d steps of %d gradients, want 2 of 2", err, gaveUp.Stats().Steps, computed)
		}
		others.Wait()
		if err := other.Apply(t.Context(), make(tensor.Vector, 2050), peer.Result{}); err == nil {
			t.Error("a step was applied beside the algorithm")
		}
	})
}

// TestWhoOnlyServes: a peer that makes no steps serves the others until the run is over, counts for no work, and ends with
// their model.
func TestWhoOnlyServes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const serves = 2
		r := rivals()[3]
		flock := r.flock(t, func(i int, c *peer.Config) {
			c.Training.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) {
				return r.machine(baseline.Config{Self: config.Self, Deadline: rivalDeadline, ServeOnly: i == serves})
			}
		})
		var waiting sync.WaitGroup
		for i, p := range flock.Peers {
			waiting.Go(func() {
				var err error
				for gradient := atPace(rivalStep, towards); err == nil; {
					if i == serves {
						err = p.Serve(t.Context())
					} else {
						err = p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return gradient(i, x, grad) })
					}
				}
				if !errors.Is(err, peer.ErrRunOver) {
					t.Errorf("peer %d: %v", i, err)
				}
			})
		}
		waiting.Wait()
		for i, p := range flock.Peers {
			if s := p.Stats(); (i == serves) != (s.Steps == 0) || s.FlockSteps < (rivalPeers-1)*rivalSteps || s.FlockSteps > (rivalPeers-1)*rivalSteps*21/20 {
				t.Errorf("peer %d: %d steps of %d", i, s.Steps, s.FlockSteps)
			}
		}
		leaveTogether(flock)
		for i, model := range flock.Models() {
			if !slices.Equal(model, flock.Models()[0]) {
				t.Errorf("peer %d ends with another model than peer 0", i)
			}
		}
		if err := flock.Peers[serves].Serve(t.Context()); !errors.Is(err, peer.ErrRunOver) && !errors.Is(err, peer.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}
