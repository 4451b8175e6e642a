package peer_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/arrival"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/transport"
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
		var first tensor.Vector
		began := time.Now()
		err := late.Step(t.Context(), func(x, grad tensor.Vector) (peer.Result, error) {
			first = append(first, x...)
			return peer.Result{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the first step waited %s", waited)
		}
		for i, v := range first {
			if v < common+0.5 || v > common+1.5 {
				t.Fatalf("value %d of the latecomer's first snapshot is %g: not the flock's, which is about %d", i, v, common+1)
			}
		}
		s := late.Stats()
		if s.FlockSteps < 900 || s.FlockSteps > 920 {
			t.Errorf("the latecomer thinks that the flock has taken %d steps, want 901", s.FlockSteps)
		}
		flock.Train(t.Context(), atPace(10*time.Millisecond, towards))
		for i, p := range flock.Peers {
			s := p.Stats()
			if s.FlockSteps < 2000 || s.FlockSteps > 2300 {
				t.Errorf("peer %d ends at %d steps of the flock, want about 2000", i, s.FlockSteps)
			}
			if s.Exchanges.Completed() == 0 {
				t.Errorf("peer %d never exchanged", i)
			}
		}
	})
}

func TestRefusalsNameTheReasonOnBothSides(t *testing.T) {
	other, err := tensor.NewLayout(tensor.Spec{Name: "weights", Shape: []int{3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		run    string
		params *tensor.Params
		want   error
	}{
		{"another layout", "digits", tensor.NewParams(other), transport.ErrLayout},
		{"another run", "letters", newModel(), transport.ErrUnknownRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				core, logged := observer.New(zap.WarnLevel)
				there, here := inMemory(t, network, "host", "digits"), inMemory(t, network, "guest", c.run)
				there.SetBuild("v2")
				here.SetBuild("v1")
				there.Log = zap.New(core)
				host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: there})
				guest := start(t, peer.Config{Run: c.run, Params: c.params, Join: host.JoinAddresses(), Network: here})
				if err := guest.WaitMembers(t.Context(), 2); !errors.Is(err, c.want) {
					t.Errorf("waiting for members: %v, want %v", err, c.want)
				}
				err := step(t, guest, idle)
				var refused *transport.RefusedError
				if !errors.Is(err, c.want) || !errors.As(err, &refused) || refused.Peer != host.Self() {
					t.Fatalf("the guest's step: %v, want %v by the host", err, c.want)
				}
				if !strings.Contains(err.Error(), "same") {
					t.Errorf("%q names no remedy", err)
				}
				if c.want == transport.ErrLayout && !strings.Contains(err.Error(), "the build here is v2; your build is v1") {
					t.Errorf("%q names not both builds", err)
				}
				if c.want == transport.ErrLayout && (logged.Len() == 0 || !strings.Contains(logged.All()[0].Message, "refused")) {
					t.Errorf("the host logged %v", logged.All())
				}
				if err := step(t, host, idle); err != nil {
					t.Errorf("the host is disturbed: %v", err)
				}
			})
		})
	}
}

func TestSilentAddressIsTriedUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		core, logged := observer.New(zap.WarnLevel)
		place := inMemory(t, network, "early", "digits")
		place.Log = zap.New(core)
		early := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:late"}, Network: place})
		began := time.Now()
		if err := step(t, early, idle); err != nil {
			t.Fatalf("a peer that reaches nobody does not train: %v", err)
		}
		if waited := time.Since(began); waited > arrival.Timeout {
			t.Errorf("waited %s before training alone", waited)
		}
		if logged.FilterMessageSnippet("training alone").Len() != 1 || early.Stats().Joined {
			t.Errorf("it does not say that it trains alone: %v", logged.All())
		}
		start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, network, "late", "digits")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := early.WaitMembers(ctx, 2); err != nil {
			t.Fatal(err)
		}
		if !early.Stats().Joined {
			t.Error("joined, and does not say so")
		}
	})
}

func TestPeerGivenItsOwnAddressJoinsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		all := []string{"mem:one", "mem:two"}
		one := start(t, peer.Config{Run: "digits", Params: newModel(), Join: all, Network: inMemory(t, network, "one", "digits")})
		start(t, peer.Config{Run: "digits", Params: newModel(), Join: all, Network: inMemory(t, network, "two", "digits")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := one.WaitMembers(ctx, 2); err != nil {
			t.Fatal(err)
		}
	})
}

// TestThePeerAtTheAddressOfAllIsTheFirst: on TCP, the peer whose own address all are
// given begins the run, as one that is given none does.
func TestThePeerAtTheAddressOfAllIsTheFirst(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	probe.Close()
	p := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{address}, Network: peer.Network{Listen: []string{address}}})
	if err := step(t, p, idle); err != nil {
		t.Fatal(err)
	}
	if !p.Stats().Joined {
		t.Error("it does not know that it is the first")
	}
}
