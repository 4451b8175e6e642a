package peer_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/averaging/baseline"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// rival is a strategy other than AD-PSGD.
type rival struct {
	name    string
	machine func(baseline.Config) (averaging.Machine, error)
	// exact: all peers end with the same model. Else their models are near.
	exact bool
}

func rivals() []rival {
	return []rival{
		{"allreduce", func(c baseline.Config) (averaging.Machine, error) { return baseline.NewAllReduce(c) }, true},
		{"dpsgd", func(c baseline.Config) (averaging.Machine, error) { return baseline.NewDPSGD(c) }, false},
		{"ps-bsp", served(func() (baseline.Gate, error) { return baseline.BSP{}, nil }), false},
		{"ps-asp", served(func() (baseline.Gate, error) { return baseline.ASP{}, nil }), false},
		{"ps-ssp", served(func() (baseline.Gate, error) { return baseline.NewSSP(3) }), false},
		{"ps-dssp", served(func() (baseline.Gate, error) { return baseline.NewDSSP(3, 15) }), false},
	}
}

func served(gate func() (baseline.Gate, error)) func(baseline.Config) (averaging.Machine, error) {
	return func(c baseline.Config) (averaging.Machine, error) {
		g, err := gate()
		if err != nil {
			return nil, err
		}
		return baseline.NewParamServer(c, g)
	}
}

// eachRival runs a test in virtual time for every strategy. The race detector sees one
// server: the gates of the others are pure.
func eachRival(t *testing.T, test func(t *testing.T, r rival)) {
	for _, r := range rivals() {
		if underRace && strings.HasPrefix(r.name, "ps-") && r.name != "ps-bsp" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, r) })
		})
	}
}

const (
	rivalPeers = 4
	rivalSteps = 300 / sparing
	rivalStep  = 10 * time.Millisecond
	// rivalFate is when a peer dies, freezes or leaves.
	rivalFate = rivalSteps * rivalStep / 3
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
	for _, p := range flock.Peers {
		if err := p.WaitMembers(t.Context(), rivalPeers); err != nil {
			t.Fatal(err)
		}
	}
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

// check checks that those peers which live have learned what all want.
func (r rival) check(t *testing.T, flock *peertest.Flock) {
	t.Helper()
	models := flock.Models()
	living := flock.Living()
	for _, i := range living {
		want := common + float64(rivalPeers-1)/2
		if off := math.Abs(float64(models[i][3]) - want); off > 1 {
			t.Errorf("peer %d is at %g, want about %g", i, models[i][3], want)
		}
		// Who learns of the end a round before the others misses the last small step.
		if r.exact && tensor.SquaredDistance(models[i], models[living[0]]) > 1e-4 {
			t.Errorf("the models of peers %d and %d are %g apart", i, living[0], math.Sqrt(tensor.SquaredDistance(models[i], models[living[0]])))
		}
	}
}

// checkEnd checks that peers which have left have the model of the last update.
func (r rival) checkEnd(t *testing.T, flock *peertest.Flock) {
	t.Helper()
	if r.name == "dpsgd" {
		return // its models differ
	}
	models := flock.Models()
	for i, model := range models {
		if !slices.Equal(model, models[0]) {
			t.Errorf("peers %d and 0 end with models that are %g apart", i, math.Sqrt(tensor.SquaredDistance(model, models[0])))
		}
	}
}

// TestRivalsLearn: every strategy makes the steps that there are to make, in about the
// time that they take, and ends without waiting for anybody.
func TestRivalsLearn(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		flock := r.flock(t, nil)
		began := time.Now()
		flock.Train(t.Context(), atPace(rivalStep, towards))
		trained := time.Since(began)
		r.check(t, flock)
		for i, p := range flock.Peers {
			s := p.Stats()
			t.Logf("peer %d: %d steps, %d of the flock; %d transfers and exchanges, %d refused, %d failed; %.1f bits a parameter; longest hold %s",
				i, s.Steps, s.FlockSteps, s.Exchanges.Completed(), s.Exchanges.Refused, s.Exchanges.Failed, s.Exchanges.BitsPerParameter, s.Exchanges.LongestHold)
			if s.Steps < rivalSteps*2/3 || s.Steps > rivalSteps*3/2 || s.FlockSteps > rivalPeers*rivalSteps*21/20 || s.Exchanges.Failed > rivalPeers-1 || s.Quarantined > 0 {
				t.Errorf("peer %d: %+v", i, s)
			}
			if bits := s.Exchanges.BitsPerParameter; bits < 32 || bits > 40 {
				t.Errorf("peer %d: %.2f bits a parameter", i, bits)
			}
		}
		if trained > rivalSteps*4*rivalStep {
			t.Errorf("%s for %d steps of %s", trained, rivalSteps, rivalStep)
		}
		began = time.Now()
		leaveTogether(flock)
		closed := time.Since(began)
		t.Logf("trained for %s, closed within %s", trained, closed)
		r.checkEnd(t, flock)
		if closed > 2*time.Second {
			t.Errorf("closing took %s: somebody has waited for somebody", closed)
		}
	})
}

// leaveTogether closes all peers at once, as processes that end.
func leaveTogether(flock *peertest.Flock) {
	done := make(chan struct{})
	living := flock.Living()
	for _, i := range living {
		go func() {
			flock.Leave(i)
			done <- struct{}{}
		}()
	}
	for range living {
		<-done
	}
}

// slowest is the longest time between two steps of any peer that lives.
type slowest struct {
	last [rivalPeers]time.Time
	gap  [rivalPeers]time.Duration
}

func (s *slowest) watch(gradient peertest.Gradient) peertest.Gradient {
	return func(i int, x, grad tensor.Vector) (peer.Result, error) {
		if now := time.Now(); s.last[i].IsZero() {
			s.last[i] = now
		} else {
			s.gap[i] = max(s.gap[i], now.Sub(s.last[i]))
			s.last[i] = now
		}
		return gradient(i, x, grad)
	}
}

// TestRivalsGoOnWithoutADeadWorker: when it is killed, the others go on soon, and do the
// work.
func TestRivalsGoOnWithoutADeadWorker(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		flock := r.flock(t, nil)
		victim := worker(t, flock)
		var pauses slowest
		go func() {
			time.Sleep(rivalFate)
			flock.Crash(victim)
		}()
		flock.Train(t.Context(), pauses.watch(atPace(rivalStep, towards)))
		for _, i := range flock.Living() {
			if s := flock.Peers[i].Stats(); !s.Over || s.Steps < rivalSteps+rivalSteps/20 { // the victim's share too
				t.Errorf("without peer %d, peer %d: %+v", victim, i, s)
			}
		}
		t.Logf("without peer %d: the longest pauses are %s", victim, pauses.gap)
		leaveTogether(flock)
	})
}

// TestRivalsHaltWithTheirCoordinator: when it is killed, every other trainer hears so by the
// error of its step, and not later than a deadline after that.
func TestRivalsHaltWithTheirCoordinator(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		if r.name == "dpsgd" {
			return // it has none
		}
		flock := r.flock(t, nil)
		dead := coordinator(t, flock)
		var died time.Time
		go func() {
			time.Sleep(rivalFate)
			died = time.Now()
			flock.Crash(dead)
		}()
		var group sync.WaitGroup
		for i, p := range flock.Peers {
			group.Go(func() {
				var err error
				for err == nil {
					err = p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return atPace(rivalStep, towards)(i, x, grad) })
				}
				halted := (*peer.HaltedError)(nil)
				if i != dead && (!errors.Is(err, peer.ErrCoordinatorLost) || !errors.As(err, &halted)) {
					t.Errorf("peer %d hears %v", i, err)
				}
				if late := time.Since(died); i != dead && late > rivalDeadline+time.Second {
					t.Errorf("peer %d hears of it after %s", i, late)
				}
			})
		}
		group.Wait()
		leaveTogether(flock)
	})
}

// TestRivalsGoOnWithoutAFrozenWorker: a peer from which nothing comes any more, and of
// which no connection breaks, costs the others a deadline or two, and no more.
func TestRivalsGoOnWithoutAFrozenWorker(t *testing.T) {
	t.Parallel()
	eachRival(t, func(t *testing.T, r rival) {
		flock := r.flock(t, func(_ int, c *peer.Config) { c.Training.Exchange.Deadline = rivalDeadline })
		victim := worker(t, flock)
		var pauses slowest
		var stopped atomic.Bool
		still := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			time.Sleep(rivalFate)
			stopped.Store(true)
			select {
			case <-still: // it waits for nobody who could be lost to it
			case <-ctx.Done():
			}
			frozen := flock.Peers[victim].Self()
			for _, id := range flock.IDs() {
				if id != frozen {
					flock.Network.StallAfter(frozen, id, 0)
					flock.Network.StallAfter(id, frozen, 0)
				}
			}
			for i, p := range flock.Peers { // the frozen one alone has no end to reach
				for i != victim && !p.Stats().Over {
					time.Sleep(100 * time.Millisecond)
				}
			}
			cancel()
		}()
		flock.Train(ctx, pauses.watch(func(i int, x, grad tensor.Vector) (peer.Result, error) {
			if time.Sleep(rivalStep); i == victim && stopped.Load() {
				close(still)
				<-ctx.Done()
			}
			return towards(i, x, grad)
		}))
		<-watched
		for i, p := range flock.Peers {
			if s := p.Stats(); i != victim && (!s.Over || s.Steps < rivalSteps) {
				t.Errorf("without peer %d, peer %d: %+v", victim, i, s)
			}
			if i != victim && pauses.gap[i] > 3*rivalDeadline {
				t.Errorf("without peer %d, peer %d paused for %s", victim, i, pauses.gap[i])
			}
		}
		t.Logf("without peer %d: the longest pauses are %s", victim, pauses.gap)
		flock.Crash(victim)
		leaveTogether(flock)
	})
}
