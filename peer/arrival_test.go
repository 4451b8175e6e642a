package peer_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/optim"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/tensor"
)

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
		after := meanOf(flock.Models()[:3])
		for i := range before {
			if math.Abs(after[i]-before[i]) > 0.05 {
				t.Fatalf("value %d of the finished models went from %g to %g", i, before[i], after[i])
			}
		}
	})
}

func TestALateSeedMakesNoNewIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		one := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "one", "digits")})
		two := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:one", "mem:late"}, Network: inMemory(t, network, "two", "digits")})
		for range 10 {
			if err := errors.Join(step(t, one, idle), step(t, two, idle)); err != nil {
				t.Fatal(err)
			}
		}
		start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:one"}, Network: inMemory(t, network, "late", "digits")})
		time.Sleep(30 * time.Second)
		if s := one.Stats(); s.Lost != 0 || s.FlockSteps != 20 || s.Members != 3 {
			t.Errorf("lost %d, %d steps, %d members; want 0, 20, 3", s.Lost, s.FlockSteps, s.Members)
		}
	})
}

// TestASeedThatIsOnlyStartingIsAskedAgain: its process is there, its peer not yet.
func TestASeedThatIsOnlyStartingIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		seed := inMemory(t, network, "seed", "digits")
		guest := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:seed"}, Network: inMemory(t, network, "guest", "digits")})
		time.Sleep(time.Second)
		start(t, peer.Config{Run: "digits", Params: newModel(), Network: seed})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := guest.WaitMembers(ctx, 2); err != nil {
			t.Fatal(err)
		}
		if err := step(t, guest, idle); err != nil {
			t.Error(err)
		}
	})
}

// TestASilentAddressDelaysNoOther: a latecomer with one dead and one good address
// copies the model all the same.
func TestASilentAddressDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "host", "digits"), Training: peer.Training{Schedule: optim.Schedule{Rate: 1, Shape: optim.Constant}, Optimizer: &optim.SGD{}}})
		if err := step(t, host, towards); err != nil { // to all the same, at once
			t.Fatal(err)
		}
		hole := inMemory(t, network, "hole", "digits")
		guest := inMemory(t, network, "guest", "digits")
		network.Cut(hole.Transport.Self(), guest.Transport.Self())
		late := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:hole", "mem:host"}, Network: guest})
		err := step(t, late, func(_ int, x, _ tensor.Vector) (peer.Result, error) {
			for i, v := range x {
				if math.Abs(float64(v)-common) > 1e-4 {
					t.Fatalf("value %d of the first snapshot is %g, the host's is %d", i, v, common)
				}
			}
			return peer.Result{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestTwoPeersOfOneRunOnOneTransportAreAnError(t *testing.T) {
	tr, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	config := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Transport: tr}}
	start(t, config)
	config.Params = newModel()
	if second, err := peer.Start(t.Context(), config); err == nil {
		second.Close()
		t.Error("a second peer of the same run was started")
	}
}

// TestAnExchangeCannotOutliveItsDeadline: neither by proposing its id twice nor by
// sending a frame byte by byte.
func TestAnExchangeCannotOutliveItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRogue(t)
		stream, frames := r.open()
		stream.Write(r.propose(nil))
		if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeAccept {
			t.Fatalf("the host answers %v, %v", header.Type, err)
		}
		again, framesAgain := r.open()
		again.Write(r.propose(nil))
		if header, _, err := framesAgain.Next(); err != nil || header.Type != wire.TypeRefuse {
			t.Errorf("the same exchange again: %v, %v", header.Type, err)
		}
		again.Close()
		slow := r.code(1)
		for range 4 {
			stream.Write(slow[:1])
			slow = slow[1:]
			time.Sleep(4 * time.Second)
		}
		if failed := r.host.Stats().Exchanges.Failed; failed != 1 {
			t.Errorf("%d exchanges failed after 16 s of dripping, want 1", failed)
		}
	})
}

// TestSurvivorsFindEachOther: whoever dies, those who are left exchange again.
func TestSurvivorsFindEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flock := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Link: memnet.Link{Delay: time.Millisecond}, Configure: shortRun})
		roles := map[string][]int{}
		for i, p := range flock.Peers {
			roles[p.Stats().Role] = append(roles[p.Stats().Role], i)
		}
		left := roles["active"] // both of one role
		if len(left) != 2 {
			t.Fatalf("roles %v", roles)
		}
		for _, i := range roles["passive"] {
			flock.Network.Crash(flock.Peers[i].Self())
		}
		flock.TrainSteps(t.Context(), 100, atPace(10*time.Millisecond, towards))
		for _, i := range left {
			if s := flock.Peers[i].Stats(); s.Exchanges.Completed() == 0 || s.Members != 2 {
				t.Errorf("peer %d: %d exchanges among %d members", i, s.Exchanges.Completed(), s.Members)
			}
		}
	})
}

func TestTrainingGoesOnAfterAnOverflow(t *testing.T) {
	for name, optimizer := range map[string]optim.Optimizer{"sgd": &optim.SGD{Momentum: 0.9}, "adamw": &optim.AdamW{}} {
		t.Run(name, func(t *testing.T) {
			p := startAlone(t, func(c *peer.Config) { c.Training.Optimizer = optimizer })
			huge := func(_ int, _, grad tensor.Vector) (peer.Result, error) {
				grad[0] = 3e38
				return peer.Result{Loss: math.Inf(1)}, nil
			}
			for range 3 {
				if err := step(t, p, huge); !errors.Is(err, optim.ErrNotFinite) {
					t.Errorf("a gradient of 3e38: %v", err)
				}
			}
			before, after := make(tensor.Vector, 2050), make(tensor.Vector, 2050)
			p.Snapshot(before, 0)
			if err := step(t, p, towards); err != nil {
				t.Fatal(err)
			}
			p.Snapshot(after, 0)
			if before[0] == after[0] || math.IsNaN(p.Stats().Loss) {
				t.Errorf("value 0 stays %g, loss %g", after[0], p.Stats().Loss)
			}
		})
	}
}
