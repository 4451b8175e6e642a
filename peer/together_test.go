package peer_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
	"github.com/seed-97356399/murmuration/topology"
)

// soloist makes each of its trainer's gradients a step of the peer's own, once it has
// heard from every neighbour that it has got as far: a barrier of words, without
// transfers.
type soloist struct {
	averaging.Machine                  // none
	halt              averaging.Reason // with which to answer the gradient of the third round, if any
	members           []topology.PeerID
	self              topology.PeerID
	round             uint64
	waiting           bool
	over              bool
	heard             map[topology.PeerID]uint64
}

func newSoloist(config averaging.Config) *soloist {
	return &soloist{self: config.Self, heard: map[topology.PeerID]uint64{}}
}

func (m *soloist) Traits() collective.Traits {
	return collective.Traits{Gradients: true, Messages: true}
}

func (m *soloist) Decide(_ time.Duration, e collective.Event, actions []collective.Action) []collective.Action {
	switch e.Kind {
	case averaging.ViewChanged:
		m.members = m.members[:0]
		for i := range e.Overlay.View().Len() {
			if id := e.Overlay.View().At(i).ID; id != m.self {
				m.members = append(m.members, id)
			}
		}
	case collective.GradientDone:
		m.round++
		if m.halt != 0 && m.round == 3 {
			return append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Halt, Reason: m.halt}})
		}
		m.waiting = true
		actions = m.speak(actions)
	case averaging.TimerFired:
		actions = m.speak(actions)
	case collective.Received:
		m.heard[e.Peer] = max(m.heard[e.Peer], e.Message.Round)
	case collective.Updated:
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.Proceed}})
	case averaging.RunOver:
		m.over = true
		actions = append(m.speak(actions), collective.Action{Action: averaging.Action{Kind: averaging.Settled}})
	}
	if m.waiting && m.complete() {
		m.waiting = false
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Load}}, collective.Action{Action: averaging.Action{Kind: collective.Update}})
	}
	return actions
}

// speak tells everybody how far this peer is, and does so again until all are as far.
func (m *soloist) speak(actions []collective.Action) []collective.Action {
	round := m.round
	if m.over {
		round = math.MaxUint64
	}
	for _, id := range m.members {
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: collective.Tell, Peer: id}, Message: collective.Message{Kind: 1, Round: round}})
	}
	if m.waiting {
		actions = append(actions, collective.Action{Action: averaging.Action{Kind: averaging.SetTimer, Timer: averaging.RoundDeadline, After: 100 * time.Millisecond}})
	}
	return actions
}

func (m *soloist) complete() bool {
	for _, id := range m.members {
		if m.heard[id] < m.round {
			return false
		}
	}
	return true
}

func soloists(change func(*soloist)) func(int, *peer.Config) {
	return func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Exchange.Machine = func(config averaging.Config) (averaging.Machine, error) {
			m := newSoloist(config)
			if change != nil {
				change(m)
			}
			return m, nil
		}
	}
}

func TestStepsOfAMachineThatAveragesGradients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Configure: soloists(nil), Link: memnet.Link{Delay: time.Millisecond}})
		began := time.Now()
		flock.Train(t.Context(), func(i int, x, grad tensor.Vector) (peer.Result, error) {
			time.Sleep(time.Duration(i+1) * 5 * time.Millisecond)
			return towards(i, x, grad)
		})
		took := time.Since(began)
		for i, p := range flock.Peers {
			s := p.Stats()
			if s.Steps < 395 || s.Steps > 470 || !s.Over {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
		if slow := 15 * time.Millisecond; took < 400*slow || took > 500*slow {
			t.Errorf("%s for 400 rounds of %s", took, slow)
		}
		for i, model := range flock.Models() {
			if math.Abs(float64(model[0])-float64(common+i)) > 0.1 {
				t.Errorf("peer %d has come to %g", i, model[0])
			}
		}
	})
}

func TestHaltEndsTheStepAndNotThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: soloists(func(m *soloist) { m.halt = averaging.NoCoordinator })})
		p := flock.Peers[0]
		for i := range 2 {
			if err := step(t, p, towards); err != nil {
				t.Fatalf("step %d: %v", i+1, err)
			}
		}
		err := step(t, p, towards)
		if halted := (*peer.HaltedError)(nil); !errors.As(err, &halted) || !errors.Is(err, peer.ErrCoordinatorLost) || halted.Reason != averaging.NoCoordinator {
			t.Fatalf("error %v", err)
		}
		if err := step(t, p, towards); err != nil || p.Stats().Steps != 3 {
			t.Errorf("after it: %v, %d steps", err, p.Stats().Steps)
		}
	})
}

// TestAStepThatIsGivenUpWaitingHasHandedItsGradientOver is what the documentation of Step
// says of contexts that end.
func TestAStepThatIsGivenUpWaitingHasHandedItsGradientOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Configure: soloists(nil)})
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
	})
}

func TestApplyIsNotForGradients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: soloists(nil)})
		if err := flock.Peers[0].Apply(t.Context(), make(tensor.Vector, 2050), peer.Result{}); err == nil {
			t.Error("a step was applied beside the algorithm")
		}
	})
}
