package peer_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// nodeIn makes a node of a flock's run.
func nodeIn(t *testing.T, f *peertest.Flock, name string) *peer.Node {
	t.Helper()
	network := inMemory(t, f.Network, name, peertest.Run)
	network.Run, network.Join = peertest.Run, f.Peers[0].JoinAddresses()[:1]
	n, err := peer.Join(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// stateOf is what a member is about, as another knows it.
func stateOf(t *testing.T, at *peer.Node, id transport.PeerID) control.Member {
	t.Helper()
	for _, m := range at.Members() {
		if m.ID == id {
			return m
		}
	}
	t.Fatalf("%s is no member", id)
	return control.Member{}
}

// TestANodeJoinsARunOfTrainers: a node sums with those that train, is asked for no exchange, trains
// itself and has the flock's model, and stays when it does not train any more; meanwhile nobody's
// exchange is refused or fails.
func TestANodeJoinsARunOfTrainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		training := func(_ int, c *peer.Config) {
			c.Training.Exchange.Pace.Every, c.Training.Schedule, c.Training.Optimizer = 1, optim.Schedule{Rate: 0.1}, &optim.SGD{}
		}
		f := peertest.Start(t, peertest.Config{Peers: 3, Params: newModel, Configure: training, Link: memnet.Link{Delay: time.Millisecond}})
		var trains sync.WaitGroup
		steps := func(n int) { trains.Go(func() { f.TrainSteps(t.Context(), n, atPace(10*time.Millisecond, towards)) }) }
		steps(200)
		n := nodeIn(t, f, "node")
		if err := n.WaitMembers(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i := range 3 {
			var group sync.WaitGroup
			name := fmt.Sprint("sum ", i)
			group.Go(func() {
				if got, peers, err := n.Sum(t.Context(), name, []float64{1}); err != nil || peers != 4 || got[0] != 4 {
					t.Errorf("%v of %d, %v", got, peers, err)
				}
			})
			sameSum(t, name, sumAll(f, func(i int, p *peer.Peer) summed { return sumOf(t.Context(), p, name, 1) }), summed{vector: []float64{4}, peers: 4})
			group.Wait()
		}
		if s := n.Stats(); n.State() != control.Idle || s.Members != 4 || s.Steps != 0 || s.Exchanges.Completed() != 0 {
			t.Errorf("the node is %s: %+v", n.State(), s)
		}
		seen := stateOf(t, f.Peers[1].Node, n.Self())
		if seen.State != control.Idle || seen.Role.Valid() && seen.Role != 0 {
			t.Errorf("others see the node as %+v", seen)
		}
		trains.Wait()

		params := newModel()
		for i := range params.Vector() {
			params.Vector()[i] = 100 // of no use: it has to copy the flock's
		}
		trainer, err := n.Train(t.Context(), peer.Training{
			Params: params, Schedule: optim.Schedule{Rate: 0.1}, Optimizer: &optim.SGD{}, Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Train(t.Context(), peer.Training{Params: newModel()}); err == nil {
			t.Error("one node trains two models")
		}
		steps(100)
		for range 100 {
			if err := trainer.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
				return atPace(10*time.Millisecond, towards)(1, x, grad)
			}); err != nil {
				t.Fatal(err)
			}
		}
		trains.Wait()
		s := trainer.Stats()
		if s.Steps != 100 || s.Age < 200 || s.Exchanges.Completed() == 0 || s.Role == "undecided" || s.Members != 4 || n.State() != control.Training {
			t.Errorf("the trainer: %+v, %s", s, n.State())
		}
		model := make(tensor.Vector, len(params.Vector()))
		if _, err := trainer.Snapshot(model, 0); err != nil || model[0] > 60 {
			t.Errorf("it trains on its own values: %g, %v", model[0], err)
		}
		if err := errors.Join(trainer.Close(), trainer.Close()); err != nil {
			t.Error(err)
		}
		if err := trainer.Step(t.Context(), nil); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("a step after its end: %v", err)
		}
		time.Sleep(2 * time.Second)
		steps(100)
		trains.Wait()
		time.Sleep(2 * time.Second) // everybody's record tells
		seen = stateOf(t, f.Peers[1].Node, n.Self())
		if seen.State != control.Idle || seen.Role != 0 || seen.Steps != 100 || n.State() != control.Idle {
			t.Errorf("others see what trained as %+v, and it is %s", seen, n.State())
		}
		for i, p := range f.Peers {
			s := p.Stats()
			if s.Exchanges.Failed > 0 || s.FlockSteps != 3*400+100 || s.Members != 4 {
				t.Errorf("peer %d: %d exchanges failed, %d steps of %d members", i, s.Exchanges.Failed, s.FlockSteps, s.Members)
			}
			for why, times := range p.Counters().Refused {
				if why != "busy" {
					t.Errorf("peer %d was refused %d times: %s", i, times, why)
				}
			}
		}
		again, err := n.Train(t.Context(), peer.Training{Params: newModel()})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return towards(1, x, grad) }); err != nil || n.Stats().Steps != 101 {
			t.Errorf("it trains again: %v, %d steps", err, n.Stats().Steps)
		}
	})
}

// TestWhatAnEndedTrainerSavesIsOfItsEnd: the node's count of the flock's steps goes on, and the model does not, so that who trains
// again after a long rest copies the flock's, and goes on with its own after a short one.
func TestWhatAnEndedTrainerSavesIsOfItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := averaging.Pace{Every: 1}
		f := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: func(_ int, c *peer.Config) {
			c.Training.Exchange.Pace, c.Training.Schedule, c.Training.Optimizer = pace, optim.Schedule{Rate: 0.1}, &optim.SGD{}
		}})
		steps := func(n int) { f.TrainSteps(t.Context(), n, atPace(10*time.Millisecond, towards)) }
		steps(100)
		n := nodeIn(t, f, "node")
		if err := n.WaitMembers(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		begin := func(saved peer.Saved) *peer.Trainer {
			params := newModel()
			copy(params.Vector(), saved.Params)
			trainer, err := n.Train(t.Context(), peer.Training{
				Params: params, Schedule: optim.Schedule{Rate: 0.1}, Optimizer: &optim.SGD{}, Exchange: peer.Exchange{Pace: pace}, Checkpoint: saved.Checkpoint,
			})
			if err == nil {
				err = trainer.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) { return towards(2, x, grad) })
			}
			if err != nil {
				t.Fatal(err)
			}
			return trainer
		}
		first := begin(peer.Saved{})
		time.Sleep(5 * time.Second) // everybody's record tells
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		ended := n.Stats().FlockSteps
		for rests, kept := range []bool{true, false} { // a moment, and half of the run
			steps(rests * 100)
			time.Sleep(2 * time.Second)
			var saved peer.Saved
			if err := first.SaveAll(&saved); err != nil || saved.Checkpoint.Said().FlockSteps != ended {
				t.Fatalf("after %d steps, %v, the checkpoint says %d", ended, err, saved.Checkpoint.Said().FlockSteps)
			}
			again := begin(saved)
			if s := again.Stats().State; s.Kept != kept || s.Kept == (s.Servers > 0) {
				t.Errorf("after %d steps of others the trainer has its model so: %+v", rests*200, s)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestANodeWithAnotherModel: what a node is to train is compared with the run's only then, and the node stays.
func TestANodeWithAnotherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 2, Params: newModel, Configure: shortRun})
		n := nodeIn(t, f, "node")
		if err := n.WaitMembers(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		layout, err := tensor.NewLayout(tensor.Spec{Name: "other", Shape: []int{3}})
		if err != nil {
			t.Fatal(err)
		}
		trainer, err := n.Train(t.Context(), peer.Training{Params: tensor.NewParams(layout)})
		if err != nil {
			t.Fatal(err)
		}
		if err := trainer.Step(t.Context(), nil); !errors.Is(err, transport.ErrLayout) {
			t.Errorf("it trains another model: %v", err)
		}
		if err := trainer.Close(); err != nil {
			t.Error(err)
		}
		if n.State() != control.Idle || n.Stats().Members != 3 {
			t.Errorf("%s among %d", n.State(), n.Stats().Members)
		}
		if got, err := n.Train(t.Context(), peer.Training{}); !errors.Is(err, peer.ErrConfig) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// TestNodesTrainTogether: nodes that begin to train at different moments, and wait for each other, do their work together
// and end with steps of all; without it one that is quick ends the run alone.
func TestNodesTrainTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel})
		nodes := []*peer.Node{nodeIn(t, f, "a"), nodeIn(t, f, "b"), nodeIn(t, f, "c")}
		if err := f.Peers[0].Trainer.Close(); err != nil { // the founder watches
			t.Fatal(err)
		}
		const each = 50
		var group sync.WaitGroup
		for i, n := range nodes {
			group.Go(func() {
				if err := n.WaitMembers(t.Context(), 4); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(i) * 3 * time.Second)
				trainer, err := n.Train(t.Context(), peer.Training{
					Params: newModel(), Schedule: optim.Schedule{Rate: 0.1}, Optimizer: &optim.SGD{}, Work: peer.Work{StepsPerPeer: each},
				})
				if err == nil {
					err = trainer.WaitTrainers(t.Context(), len(nodes))
				}
				for err == nil {
					err = trainer.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
						return atPace(10*time.Millisecond, towards)(i, x, grad)
					})
				}
				if !errors.Is(err, peer.ErrRunOver) {
					t.Error(err)
				}
				if s := trainer.Stats(); s.Steps < each/2 || s.Exchanges.Completed() == 0 || s.FlockSteps < 3*each {
					t.Errorf("node %d: %d steps of %d, %d exchanges", i, s.Steps, s.FlockSteps, s.Exchanges.Completed())
				}
			})
		}
		group.Wait()
	})
}

// TestNobodyWaitsOfWhatIsClosed: neither for others, though as many are here as ever were, nor for more, though the node goes on.
func TestNobodyWaitsOfWhatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 1, Params: newModel})
		n := nodeIn(t, f, "a")
		trainer, err := n.Train(t.Context(), peer.Training{Params: newModel(), Schedule: optim.Schedule{Rate: 0.1}})
		if err == nil {
			err = trainer.WaitTrainers(t.Context(), 2)
		}
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 1)
		go func() { waits <- trainer.WaitTrainers(t.Context(), 9) }()
		synctest.Wait()
		trainer.Close()
		time.Sleep(time.Second)
		select {
		case err = <-waits:
		default:
			err = errors.New("it waits for ever")
		}
		if again := trainer.WaitTrainers(t.Context(), 1); !errors.Is(err, peer.ErrClosed) || !errors.Is(again, peer.ErrClosed) {
			t.Errorf("of a trainer that is closed: %v, %v", err, again)
		}
		if err := n.WaitMembers(t.Context(), 2); err != nil {
			t.Error(err)
		}
		n.Close()
		if err := n.WaitMembers(t.Context(), 2); !errors.Is(err, peer.ErrClosed) {
			t.Errorf("of a node that is closed: %v", err)
		}
	})
}
