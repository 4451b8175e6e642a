package peer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestOneKeyOnTwoMachines that meet through others: both name it within 10 s, the later one
// stops, with a checkpoint of the first or without, and the others go on with the first.
func TestOneKeyOnTwoMachines(t *testing.T) {
	t.Parallel()
	for _, checkpoint := range []peer.Checkpoint{{}, peer.CheckpointOf(stats.Peer{Steps: 5, Age: 5, FlockSteps: 5, Incarnation: 1})} {
		t.Run(fmt.Sprint("incarnation ", checkpoint.Said().Incarnation), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { copyOfAKey(t, checkpoint) })
		})
	}
}

func copyOfAKey(t *testing.T, checkpoint peer.Checkpoint) {
	logs := make([]*observer.ObservedLogs, 5)
	record := func(i int, c *peer.Config) {
		core, logged := observer.New(zap.WarnLevel)
		c.Network.Log, logs[i] = zap.New(core), logged
		c.Training.Exchange.Pace.Every = 5
	}
	f := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond}, Configure: record})
	f.TrainSteps(t.Context(), 50, atPace(20*time.Millisecond, towards))
	tr, err := f.Network.Duplicate("copy", "peer-3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	membership, err := swim.New(swim.Config{Transport: tr, Run: peertest.Run})
	if err != nil {
		t.Fatal(err)
	}
	config := peer.Config{
		Run:      peertest.Run,
		Params:   newModel(),
		Join:     f.Peers[0].JoinAddresses(),
		Network:  peer.Network{Transport: tr, Membership: membership},
		Training: peer.Training{Checkpoint: checkpoint},
	}
	record(4, &config)
	double := start(t, config)
	stopped := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = step(t, double, atPace(300*time.Millisecond, towards))
		}
		stopped <- err
	}()
	f.TrainSteps(t.Context(), 40, atPace(250*time.Millisecond, towards))
	select {
	case err := <-stopped:
		if !errors.Is(err, transport.ErrDuplicate) {
			t.Error(err)
		}
	default:
		t.Fatal("the later one goes on after 10 s")
	}
	for _, i := range []int{3, 4} {
		if logs[i].FilterMessageSnippet("another process has this peer's key").Len() == 0 {
			t.Errorf("peer %d does not name the other: %v", i, logs[i].All())
		}
	}
	if err := double.Close(); err != nil {
		t.Error(err)
	}
	f.TrainSteps(t.Context(), 40, atPace(250*time.Millisecond, towards))
	for i, p := range f.Peers {
		if n := p.Stats().Members; n != 4 {
			t.Errorf("peer %d sees %d members at the end", i, n)
		}
	}
}

// TestACopiedKeyIsFoundAtTheAddressToJoin: by who joins it, at once.
func TestACopiedKeyIsFoundAtTheAddressToJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		first := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "first", "digits")})
		tr, err := network.Duplicate("copy", "first")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		membership, err := swim.New(swim.Config{Transport: tr, Run: "digits"})
		if err != nil {
			t.Fatal(err)
		}
		copied := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:first"}, Network: peer.Network{Transport: tr, Membership: membership}})
		if err := step(t, copied, idle); !errors.Is(err, transport.ErrDuplicate) {
			t.Errorf("the copy: %v", err)
		}
		if err := step(t, first, idle); err != nil {
			t.Error(err)
		}
	})
}

// hidden is a transport that cannot reach its like, nor be reached by it.
type hidden struct{ *memnet.Transport }

func (hidden) Addresses() []string { return nil }

func (h hidden) Connect(ctx context.Context, address string) (transport.PeerID, error) {
	id, err := h.Transport.Connect(ctx, address)
	if errors.Is(err, transport.ErrDuplicate) {
		return "", transport.ErrUnreachable
	}
	return id, err
}

// TestOneKeyOnTwoMachinesIsNamedByAll, where the two cannot reach each other: each of the two
// processes says so, and so do the others; together they count as one peer.
func TestOneKeyOnTwoMachinesIsNamedByAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logs := make([]*observer.ObservedLogs, 5)
		record := func(i int, c *peer.Config) {
			core, logged := observer.New(zap.WarnLevel)
			c.Network.Log, logs[i] = zap.New(core), logged
			c.Training.Exchange.Pace.Every = 5
		}
		f := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond}, Configure: record})
		twins := f.Peers[3].Self()
		f.TrainSteps(t.Context(), 50, atPace(20*time.Millisecond, towards))
		tr, err := f.Network.Duplicate("copy", "peer-3")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		membership, err := swim.New(swim.Config{Transport: hidden{tr}, Run: peertest.Run})
		if err != nil {
			t.Fatal(err)
		}
		config := peer.Config{
			Run: peertest.Run, Params: newModel(), Join: f.Peers[0].JoinAddresses(),
			Network: peer.Network{Transport: hidden{tr}, Membership: membership},
		}
		record(4, &config)
		double := start(t, config)
		if double.Self() != twins {
			t.Fatal("another identity")
		}
		f.Peers = append(f.Peers, double)
		f.TrainSteps(t.Context(), 600, atPace(300*time.Millisecond, towards))
		var taken uint64
		for i, p := range f.Peers {
			s := p.Stats()
			taken += s.Steps
			named := logs[i].FilterMessageSnippet("begins one life after another").FilterField(zap.String("peer", string(twins))).Len()
			if p.Self() == twins {
				named = logs[i].FilterMessageSnippet("another process has this peer's key").Len()
			}
			if named != 1 || s.Duplicates != 1 {
				t.Errorf("peer %d names the twins %d times, and counts %d: %v", i, named, s.Duplicates, logs[i].All())
			}
		}
		time.Sleep(time.Second)
		for i, p := range f.Peers[:3] {
			if got := p.Stats().FlockSteps; got > taken {
				t.Errorf("peer %d counts %d steps, %d were taken", i, got, taken)
			}
		}
	})
}
