package peer_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// inMemory gives a peer a place of its own on an in-memory network.
func inMemory(t *testing.T, n *memnet.Network, name, run string) peer.Network {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	membership, err := n.Membership(tr, run)
	if err != nil {
		t.Fatal(err)
	}
	return peer.Network{Transport: tr, Membership: membership}
}

func start(t *testing.T, config peer.Config) *peer.Peer {
	t.Helper()
	p, err := peer.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func idle(_ int, x, grad tensor.Vector) (peer.Result, error) { return peer.Result{}, nil }

func step(t *testing.T, p *peer.Peer, gradient peertest.Gradient) error {
	t.Helper()
	return p.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return gradient(0, x, grad) })
}

// TestLatecomerCopiesANeighbourFirst: it begins with the flock's model, knows what the flock has done, and ends its run
// with the others.
func TestLatecomerCopiesANeighbourFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Training.Work = peer.Work{Steps: 2000}
		}})
		flock.TrainSteps(t.Context(), 300, atPace(10*time.Millisecond, towards))
		time.Sleep(time.Second) // until the last steps have been announced
		late := flock.Add()
		flock.WaitJoined(4)
		for i, v := range firstSnapshot(t, late) {
			if v < common+0.5 || v > common+1.5 {
				t.Fatalf("value %d of the latecomer's first snapshot is %g: not the flock's, which is about %d", i, v, common+1)
			}
		}
		if s := late.Stats(); s.FlockSteps < 900 || s.FlockSteps > 920 || s.State.Servers == 0 || s.Age < 300 {
			t.Errorf("the latecomer, of a flock that has taken 900 steps: %+v", s)
		}
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		for i, p := range flock.Peers {
			if s := p.Stats(); s.FlockSteps < 2000 || s.FlockSteps > 2300 || s.Exchanges.Completed() == 0 {
				t.Errorf("peer %d ends at %d steps of the flock, want about 2000, after %d exchanges", i, s.FlockSteps, s.Exchanges.Completed())
			}
		}
	})
}

// firstSnapshot is what a peer begins with.
func firstSnapshot(t *testing.T, p *peer.Peer) (first []float32) {
	t.Helper()
	err := p.Step(t.Context(), func(x, _ tensor.Vector) (peer.Result, error) {
		first = append(first, x...)
		return peer.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// TestANewcomerDoesNotTouchAFinishedFlock: it has nothing to share before it has
// copied, even though it learns at once that the work is done.
func TestANewcomerDoesNotTouchAFinishedFlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Configure: func(i int, c *peer.Config) {
			shortRun(i, c)
			c.Training.Work = peer.Work{Steps: 900, Grace: time.Second}
			if i == 3 {
				c.Network.Reach = peer.Unreachable // active, so that it initiates
			}
		}})
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		before := meanOf(flock.Models())
		flock.Add()
		flock.WaitJoined(4)
		time.Sleep(5 * time.Second)
		for i, after := range meanOf(flock.Models()[:3]) {
			if math.Abs(after-before[i]) > 0.05 {
				t.Fatalf("value %d of the finished models went from %g to %g", i, before[i], after)
			}
		}
	})
}

// TestWhoTrainedAloneCopiesTheModelOnceItIsFound: training from initial values is for as long as nobody answers. The step
// that is in the making then fails nobody, and the trainer goes on from the flock's model.
func TestWhoTrainedAloneCopiesTheModelOnceItIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: shortRun})
		f.TrainSteps(t.Context(), 300, atPace(10*time.Millisecond, towards))
		time.Sleep(3 * time.Second) // until the last steps have been announced
		config := peer.Config{Run: peertest.Run, Params: newModel(), Join: f.Peers[0].JoinAddresses(), Network: inMemory(t, f.Network, "late", peertest.Run)}
		shortRun(3, &config)
		for _, id := range f.IDs() {
			f.Network.Cut(id, config.Network.Transport.Self())
		}
		late := start(t, config)
		farAway := func(_ int, x, grad tensor.Vector) (peer.Result, error) {
			grad[0] = x[0] + 100
			return peer.Result{Samples: 1}, nil
		}
		alone := func(steps uint64) {
			for from := late.Stats().Steps; late.Stats().Steps < from+steps; {
				if err := step(t, late, atPace(100*time.Millisecond, farAway)); err != nil {
					t.Fatal(err)
				}
			}
		}
		alone(20)
		if s := late.Stats(); s.Joined || s.State.Servers > 0 || parameters(t, late)[0] > 0 {
			t.Errorf("before anybody answers: %+v", s)
		}
		f.Network.HealAll()
		alone(200)
		if s, model := late.Stats(), parameters(t, late); s.State.Servers == 0 || !s.Joined || s.Age < 300+100 || s.Steps < 220 || model[1] < common-1 {
			t.Errorf("200 steps after the flock answers: %+v, with %g", s, model[1])
		}
	})
}
