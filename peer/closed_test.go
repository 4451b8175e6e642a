package peer_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// parameters are a peer's, as they are now.
func parameters(t *testing.T, p *peer.Peer) tensor.Vector {
	t.Helper()
	x := make(tensor.Vector, newModel().Layout().Len())
	if _, err := p.Snapshot(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCloseDuringAStepLeavesTheParameters: as they were when it returned, whoever makes the
// steps; the step in the making says that it came too late, and is not counted.
func TestCloseDuringAStepLeavesTheParameters(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	computed := func(t *testing.T, p *peer.Peer) error {
		return step(t, p, atPace(long, towards))
	}
	applied := func(t *testing.T, p *peer.Peer) error {
		delta := make(tensor.Vector, newModel().Layout().Len())
		delta[0] = 1
		time.Sleep(long)
		return p.Apply(t.Context(), delta, peer.Result{})
	}
	traded := func(t *testing.T, p *peer.Peer) error {
		d := newTrader(t, p)
		time.Sleep(long)
		d.x[0]++
		return d.commit(t, p, 1)
	}
	for _, c := range []struct {
		name      string
		configure func(int, *peer.Config)
		step      func(*testing.T, *peer.Peer) error
	}{
		{"Step", shortRun, computed},
		{"Apply", shortRun, applied},
		{"Trade", shortRun, traded},
		{"Step with mean gradients", rivals()[0].configure, computed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: c.configure})
				p, ended := f.Peers[0], make(chan error, 1)
				go func() { ended <- c.step(t, p) }()
				time.Sleep(time.Minute)
				if s := p.State(); s != control.Training {
					t.Errorf("before Close the peer is %s", s)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if s := p.State(); s != control.Closed {
					t.Errorf("after Close the peer is %s", s)
				}
				before := parameters(t, p)
				if err := <-ended; !errors.Is(err, peer.ErrClosed) {
					t.Errorf("the step ends with %v", err)
				}
				if !slices.Equal(before, parameters(t, p)) || p.Stats().Steps != 0 {
					t.Errorf("the parameters changed after Close; %d steps", p.Stats().Steps)
				}
			})
		})
	}
}

// TestTheEndOfARunOvertakesAStep: one in the making when the models are merged is left out, and its trainer hears that the
// run is over.
func TestTheEndOfARunOvertakesAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := mergingFlock(t, 2, nil)
		slow, ended := f.Peers[0], make(chan error, 1)
		go func() { ended <- step(t, slow, atPace(time.Hour, towards)) }()
		for err := error(nil); !errors.Is(err, peer.ErrRunOver); {
			if err = step(t, f.Peers[1], atPace(10*time.Millisecond, towards)); err != nil && !errors.Is(err, peer.ErrRunOver) {
				t.Fatal(err)
			}
		}
		if err := <-ended; !errors.Is(err, peer.ErrRunOver) || slow.Stats().Steps != 0 {
			t.Errorf("the step ends with %v, %d are counted", err, slow.Stats().Steps)
		}
	})
}

// heard is a machine that tells of the gradients of which it is told.
type heard struct {
	collective.Machine
	gradients chan<- averaging.EventKind
}

func (h heard) Decide(now time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	switch e.Kind {
	case collective.GradientReady, collective.GradientDone, collective.GradientLost:
		h.gradients <- e.Kind
	}
	return h.Machine.Decide(now, e, actions)
}

// TestAGradientOfATrainerBefore: what a trainer computes when it is closed is nothing to the next one of its node, which would take it
// for its own.
func TestAGradientOfATrainerBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel})
		n, gradients := nodeIn(t, f, "a"), make(chan averaging.EventKind, 9)
		train := func(gradients chan<- averaging.EventKind) *peer.Trainer {
			machine := func(c averaging.Config) (averaging.Machine, error) {
				m, err := baseline.NewAllReduce(baseline.Config{Self: c.Self})
				return heard{m, gradients}, err
			}
			trainer, err := n.Train(t.Context(), peer.Training{Params: newModel(), Schedule: optim.Schedule{Rate: 0.1}, Exchange: peer.Exchange{Machine: machine}})
			if err != nil {
				t.Fatal(err)
			}
			return trainer
		}
		first, ended := train(make(chan averaging.EventKind, 9)), make(chan error, 1)
		go func() {
			ended <- first.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
				first.Ready(len(grad)/2, 1)
				time.Sleep(time.Hour)
				first.Ready(len(grad)/4, 1)
				return peer.Result{Samples: 1}, nil
			})
		}()
		time.Sleep(time.Minute)
		first.Close()
		second := train(gradients)
		time.Sleep(time.Hour)
		if err := <-ended; !errors.Is(err, peer.ErrClosed) {
			t.Errorf("the step ends with %v", err)
		}
		synctest.Wait()
		if len(gradients) > 0 {
			t.Errorf("the next trainer's machine hears of %d gradients, the first %d", len(gradients), <-gradients)
		}
		second.Close()
	})
}
