package peer_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

// resumable starts a flock of three with momentum, from what was saved, if anything was.
func resumable(t *testing.T, saved []peer.Saved, perPeer uint64) *peertest.Flock {
	t.Helper()
	return peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Swim: true, Configure: func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Work.StepsPerPeer = perPeer
		optimizer := &optim.SGD{Momentum: 0.5}
		c.Training.Optimizer = optimizer
		if saved == nil {
			return
		}
		copy(c.Params.Vector(), saved[i].Params)
		if err := optimizer.Restore(saved[i].Optimizer); err != nil {
			t.Error(err)
		}
		c.Training.Checkpoint = saved[i].Checkpoint
	}})
}

func saveAll(t *testing.T, f *peertest.Flock) []peer.Saved {
	t.Helper()
	saved := make([]peer.Saved, len(f.Peers))
	for i, p := range f.Peers {
		if err := p.SaveAll(&saved[i]); err != nil {
			t.Error(err)
		}
	}
	return saved
}

// TestAFlockThatDiesResumes: all peers are killed; each comes back with what it saved,
// and the flock goes on where it was: its steps, its lives, its schedule, its end. A flock that
// comes back with its work done does none.
func TestAFlockThatDiesResumes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perPeer = 400
		first := resumable(t, nil, perPeer)
		first.TrainSteps(t.Context(), 100, atPace(5*time.Millisecond, towards))
		// Everybody's record tells: memberlist may lose one (hashicorp/memberlist#263), and compares memberships later.
		for i := 0; i < len(first.Peers); time.Sleep(time.Second) {
			for i = 0; i < len(first.Peers) && first.Peers[i].Stats().FlockSteps == 300; {
				i++
			}
		}
		saved := saveAll(t, first)
		for i := range first.Peers {
			if c := saved[i].Checkpoint.Said(); c.Steps != 100 || c.FlockSteps != 300 || c.Incarnation != 1 || len(c.Past) != 2 {
				t.Errorf("peer %d saves %+v", i, c)
			}
			if !slices.Equal(saved[i].Params, first.Models()[i]) || len(saved[i].Optimizer.Vectors) != 1 {
				t.Errorf("peer %d saves other parameters, or no velocity", i)
			}
		}
		for _, p := range first.Peers {
			first.Network.Crash(p.Self())
			p.Close()
		}
		again := resumable(t, saved, perPeer)
		for i, p := range again.Peers {
			s := p.Stats()
			if s.Self != first.Peers[i].Self() {
				t.Fatal("another identity")
			}
			if s.Steps != 100 || s.Resumed != 100 || s.FlockSteps != 300 || s.Target != 3*perPeer || s.Incarnation != 2 || s.Age != 100 {
				t.Errorf("peer %d comes back as %+v", i, s)
			}
		}
		again.Train(t.Context(), atPace(20*time.Millisecond, towards))
		var total uint64
		for _, p := range again.Peers {
			total += p.Stats().Steps
		}
		if total < 3*perPeer || total > 3*perPeer*11/10 {
			t.Errorf("%d steps of all in both lives, want %d", total, 3*perPeer)
		}
		// Two that want different models share one passive here, which believes the farther of
		// them no more than its own strides explain (design/007).
		checkLearnedWithin(t, again, 4)
		time.Sleep(time.Second)
		saved = saveAll(t, again)
		for _, p := range again.Peers {
			p.Close()
		}
		over := resumable(t, saved, perPeer)
		over.Train(t.Context(), towards)
		for i, p := range over.Peers {
			if s := p.Stats(); s.Steps != s.Resumed || s.Steps == 0 || !s.Over {
				t.Errorf("peer %d: %+v", i, s)
			}
		}
	})
}

// TestSavingWhileTraining: saving again and again keeps nobody from training, and what
// is saved is of one moment each: steps never go back.
func TestSavingWhileTraining(t *testing.T) {
	f := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Configure: func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Optimizer = &optim.AdamW{}
	}})
	ended := make(chan struct{})
	var saving sync.WaitGroup
	saving.Go(func() {
		var s peer.Saved
		var last uint64
		for {
			select {
			case <-ended:
				return
			default:
			}
			if err := f.Peers[0].SaveAll(&s); err != nil {
				t.Error(err)
			}
			if s.Checkpoint.Said().Steps < last || !tensor.Finite(s.Params) {
				t.Errorf("from step %d back to %d", last, s.Checkpoint.Said().Steps)
			}
			last = s.Checkpoint.Said().Steps
		}
	})
	f.Train(t.Context(), towards)
	close(ended)
	saving.Wait()
}

// TestOrdersOutliveTheFlock: what the operator has said holds for a flock whose members
// have all been killed; what somebody else has written into a checkpoint does not.
func TestOrdersOutliveTheFlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRuled(t, 2, func(_ int, c *peer.Config) { c.Training.Work = peer.Work{Steps: 40_000} })
		r.trainAll()
		time.Sleep(time.Second)
		r.send(0, control.Command{Kind: control.SetWork, Steps: 8000}, control.Command{Kind: control.Pause, Why: "lunch"})
		time.Sleep(time.Second)
		var s peer.Saved
		if err := r.Peers[0].SaveAll(&s); err != nil {
			t.Error(err)
		}
		if len(s.Checkpoint.Said().Orders) != 2 {
			t.Fatalf("%d orders are kept, want 2", len(s.Checkpoint.Said().Orders))
		}
		back := func(name string, orders [][]byte) *peer.Peer {
			config := peer.Config{Run: peertest.Run, Params: newModel(), Network: inMemory(t, r.Network, name, peertest.Run)}
			config.Training.Work = peer.Work{Steps: 40_000}
			config.Network.Control.Operator = operatorID(t)
			kept := s.Checkpoint.Said()
			kept.Orders = orders
			config.Training.Checkpoint = peer.CheckpointWith(kept)
			return start(t, config)
		}
		if p := back("alone-1", s.Checkpoint.Said().Orders); !p.Stats().Control.Paused || p.Stats().Target != 8000 {
			t.Errorf("it comes back with %+v", p.Stats().Control)
		}
		forged := slices.Clone(s.Checkpoint.Said().Orders[0])
		forged[len(forged)-1]++
		if p := back("alone-2", [][]byte{forged, nil, {1}}); p.Stats().Control.Paused || p.Stats().Target != 40_000 {
			t.Errorf("it obeys a stranger: %+v", p.Stats().Control)
		}
		r.end()
	})
}

// TestWhoMadeNoStepComesBackAsWhoItWas: a checkpoint of a peer that has only exchanged says
// which life it was and what the others had done.
func TestWhoMadeNoStepComesBackAsWhoItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel, Configure: func(_ int, c *peer.Config) {
			c.Training.Checkpoint = peer.CheckpointWith(peer.Behind{
				Age: 40, FlockSteps: 120, Incarnation: 3, Inherited: 20, Past: []peer.Past{{Peer: "b", Incarnation: 1, Steps: 100}},
			})
		}})
		if s := flock.Peers[0].Stats(); s.Incarnation != 4 || s.FlockSteps != 120 || s.Steps != 0 || s.Age != 40 {
			t.Errorf("it comes back as %+v", s)
		}
	})
}
