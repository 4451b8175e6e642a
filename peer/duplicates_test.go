package peer_test

import (
	"context"
	"errors"
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

// cloned is a flock of four that has trained, and another process with the key of its last peer.
type cloned struct {
	*peertest.Flock
	double *peer.Peer
	logs   []*observer.ObservedLogs // of the four, and of the double
}

func clone(t *testing.T, join int, hides bool, checkpoint peer.Checkpoint) *cloned {
	t.Helper()
	c := &cloned{}
	record := func(_ int, config *peer.Config) {
		core, logged := observer.New(zap.WarnLevel)
		config.Network.Log, c.logs = zap.New(core), append(c.logs, logged)
		config.Training.Exchange.Pace.Every = 5
	}
	c.Flock = peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond}, Configure: record})
	c.TrainSteps(t.Context(), 50, atPace(20*time.Millisecond, towards))
	tr, err := c.Network.Duplicate("copy", "peer-3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	config := peer.Config{Run: peertest.Run, Params: newModel(), Join: c.Peers[join].JoinAddresses(), Training: peer.Training{Checkpoint: checkpoint}}
	if config.Network.Transport = tr; hides {
		config.Network.Transport = hidden{tr}
	}
	if config.Network.Membership, err = swim.New(swim.Config{Transport: config.Network.Transport, Run: peertest.Run}); err != nil {
		t.Fatal(err)
	}
	record(4, &config)
	if c.double = start(t, config); c.double.Self() != c.Peers[3].Self() {
		t.Fatal("another identity")
	}
	return c
}

// TestOneKeyOnTwoMachines: the two name each other within 10 s, the later one stops, whether it meets the
// first through others or joins it, with a checkpoint of the first or without, and the others go on with the
// first.
func TestOneKeyOnTwoMachines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		join       int
		checkpoint peer.Checkpoint
	}{
		"through others":    {join: 0},
		"with a checkpoint": {join: 0, checkpoint: peer.CheckpointOf(stats.Peer{Steps: 5, Age: 5, FlockSteps: 5, Incarnation: 1})},
		"joining the first": {join: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := clone(t, c.join, false, c.checkpoint)
				stopped := make(chan error, 1)
				go func() {
					var err error
					for err == nil {
						err = step(t, f.double, atPace(300*time.Millisecond, towards))
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
				named := func(i int) int { return f.logs[i].FilterMessageSnippet("another process has this peer's key").Len() }
				if named(4) == 0 || named(3) == 0 && c.join != 3 { // who is joined learns it from the handshake, of which its transport tells
					t.Errorf("the first names the other %d times, and the other the first %d times", named(3), named(4))
				}
				if err := f.double.Close(); err != nil {
					t.Error(err)
				}
				f.TrainSteps(t.Context(), 40, atPace(250*time.Millisecond, towards))
				for i, p := range f.Peers {
					if n := p.Stats().Members; n != 4 {
						t.Errorf("peer %d sees %d members at the end", i, n)
					}
				}
			})
		})
	}
}

// TestOneKeyOnTwoMachinesIsNamedByAll, where the two cannot reach each other: each of the two processes says
// so, and so do the others; together they count as one peer.
func TestOneKeyOnTwoMachinesIsNamedByAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := clone(t, 0, true, peer.Checkpoint{})
		twins := f.double.Self()
		f.Peers = append(f.Peers, f.double)
		f.TrainSteps(t.Context(), 600, atPace(300*time.Millisecond, towards))
		var taken uint64
		for i, p := range f.Peers {
			s := p.Stats()
			taken += s.Steps
			named := f.logs[i].FilterMessageSnippet("begins one life after another").FilterField(zap.String("peer", string(twins))).Len()
			if p.Self() == twins {
				named = f.logs[i].FilterMessageSnippet("another process has this peer's key").Len()
			}
			if named != 1 || s.Duplicates != 1 {
				t.Errorf("peer %d names the twins %d times, and counts %d: %v", i, named, s.Duplicates, f.logs[i].All())
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
