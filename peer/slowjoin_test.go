package peer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// trainedFlock is a flock whose model is far from the initial values.
func trainedFlock(t *testing.T, delay time.Duration) *peertest.Flock {
	t.Helper()
	return trainedHosts(t, delay, 0)
}

// trainedHosts is one whose hosts take a while to answer a hello.
func trainedHosts(t *testing.T, delay, busy time.Duration) *peertest.Flock {
	t.Helper()
	f := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Link: memnet.Link{Delay: delay}, Configure: func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Work = peer.Work{Steps: 1_000_000}
		c.Training.Optimizer = &optim.SGD{Momentum: 0.5}
		if busy > 0 {
			c.Network.Transport = busyHost{c.Network.Transport, busy}
		}
	}})
	f.TrainSteps(t.Context(), 500, atPace(10*time.Millisecond, towards))
	time.Sleep(3 * time.Second) // until the last steps have been announced
	return f
}

// busyHost is a transport whose hellos wait.
type busyHost struct {
	transport.Transport
	busy time.Duration
}

func (h busyHost) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if protocol != transport.ProtocolHello {
		return h.Transport.Handle(protocol, run, handler)
	}
	return h.Transport.Handle(protocol, run, func(s transport.Stream) {
		time.Sleep(h.busy)
		handler(s)
	})
}

// checkFlocks checks that a model is about the flock's.
func checkFlocks(t *testing.T, what string, model tensor.Vector) {
	t.Helper()
	for i, v := range model {
		if v < common-1 || v > common+4 {
			t.Errorf("value %d of %s is %g, the flock's are about %d", i, what, v, common+1)
			return
		}
	}
}

// TestASlowJoinStillCopiesTheModel: with 0.9 s from one to the other, or a host that is busy,
// nobody's answer to the hello is there within JoinPatience, but the other end has shown who
// it is.
func TestASlowJoinStillCopiesTheModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ delay, busy time.Duration }{
		"a long way":  {900 * time.Millisecond, 0},
		"a busy host": {time.Millisecond, peer.Stall - 500*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := trainedHosts(t, c.delay, c.busy)
				late := f.Add()
				began := time.Now()
				first := firstSnapshot(t, late)
				checkFlocks(t, "the first snapshot", first)
				if s := late.Stats(); s.State.Servers == 0 || s.Age < 500 {
					t.Errorf("after %s: %+v", time.Since(began), s)
				}
			})
		})
	}
}

// TestWhoTrainedAloneCopiesTheModelOnceItIsFound: training from initial values is for as long
// as nobody answers.
func TestWhoTrainedAloneCopiesTheModelOnceItIsFound(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]time.Duration{"in time for few steps": 5 * time.Second, "later": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := trainedFlock(t, time.Millisecond)
				network := inMemory(t, f.Network, "late", peertest.Run)
				for _, id := range f.IDs() {
					f.Network.Cut(id, network.Transport.Self())
				}
				config := peer.Config{Run: peertest.Run, Params: newModel(), Join: f.Peers[0].JoinAddresses(), Network: network}
				shortRun(3, &config)
				config.Training.Work = peer.Work{Steps: 1_000_000}
				late := start(t, config)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for late.Stats().Steps < 1000 {
						if err := step(t, late, atPace(100*time.Millisecond, farAway)); err != nil {
							t.Error(err)
						}
					}
				}()
				time.Sleep(busy)
				if s := late.Stats(); s.Joined || s.Steps == 0 || s.State.Servers > 0 {
					t.Errorf("before anybody answers: %+v", s)
				}
				own := late.Stats().Steps
				f.Network.HealAll()
				for late.Stats().State.Servers == 0 && own+200 > late.Stats().Steps {
					time.Sleep(100 * time.Millisecond)
				}
				s := late.Stats()
				if s.State.Servers == 0 || !s.Joined {
					t.Errorf("200 steps after the flock answers: %+v", s)
				}
				model := make(tensor.Vector, 2050)
				late.Snapshot(model, 0)
				checkFlocks(t, "the model", model)
				if s.Age < 500 || s.Steps < own || s.Exchanges.LongestHold > time.Second {
					t.Errorf("%+v", s)
				}
				<-ended
			})
		})
	}
}

// farAway is the gradient of one whose optimum is where no other's is.
func farAway(_ int, x, grad tensor.Vector) (peer.Result, error) {
	for k, v := range x {
		grad[k] = v + 100
	}
	return peer.Result{Samples: 1}, nil
}
