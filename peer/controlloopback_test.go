package peer_test

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// controlPatience is how long what must happen over real sockets may take on a busy
// machine.
const controlPatience = time.Minute

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(controlPatience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", controlPatience, what)
		}
	}
}

// newOperator is a transport with a key of its own.
func newOperator(t *testing.T) *p2pnet.Transport {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := p2pnet.New(p2pnet.Config{Identity: key, Listen: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// Over libp2p and gossipsub: what an operator tells one peer reaches all, a latecomer
// is paused before its first step, digests go round, and stop ends the run.
func TestControlOverLoopback(t *testing.T) {
	t.Parallel()
	tr := newOperator(t)
	flock := peertest.Start(t, peertest.Config{
		Peers: 3, Params: newModel, Loopback: true,
		Configure: func(_ int, c *peer.Config) {
			c.Training.Exchange.Pace.Every = 4
			c.Network.Control = control.Config{Operator: tr.Self(), Digests: time.Second}
		},
	})
	operator := control.Operator{Transport: tr, Run: peertest.Run}
	send := func(kind control.Kind, why string) {
		t.Helper()
		id, err := tr.Connect(t.Context(), flock.Peers[0].JoinAddresses()[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Send(t.Context(), id, control.Command{Kind: kind, Why: why}); err != nil {
			t.Fatal(err)
		}
	}
	var trainers sync.WaitGroup
	ends := make([]error, 4)
	train := func(i int) {
		p, gradient := flock.Peers[i], atPace(2*time.Millisecond, towards)
		trainers.Go(func() {
			for ends[i] == nil {
				ends[i] = p.Step(t.Context(), func(x, grad vector) (peer.Result, error) { return gradient(i, x, grad) })
			}
		})
	}
	paused := func() bool {
		for _, p := range flock.Peers {
			if !p.Stats().Control.Paused {
				return false
			}
		}
		return true
	}
	for i := range flock.Peers {
		train(i)
	}
	soon(t, "everybody trains and knows of the others", func() bool {
		for _, p := range flock.Peers {
			if p.Stats().Steps == 0 || len(p.Digests()) < 3 || p.Stats().Control.Neighbours < 2 {
				return false
			}
		}
		return true
	})
	began := time.Now()
	send(control.Pause, "lunch")
	soon(t, "everybody is paused", paused)
	t.Logf("paused everywhere after %v", time.Since(began))
	late := flock.Add()
	train(3)
	soon(t, "the latecomer has joined", func() bool { return late.Stats().Members == 4 && late.Stats().Control.Paused })
	if s := late.Stats(); s.Steps != 0 {
		t.Errorf("the latecomer has taken %d steps in a pause", s.Steps)
	}
	send(control.Resume, "")
	soon(t, "the latecomer trains", func() bool { return late.Stats().Steps > 0 })
	began = time.Now()
	send(control.Stop, "enough")
	trainers.Wait()
	t.Logf("stopped everywhere after %v", time.Since(began))
	for i, err := range ends {
		if !errors.Is(err, peer.ErrRunOver) || !strings.Contains(err.Error(), "enough") {
			t.Errorf("peer %d ends with %v", i, err)
		}
	}
}
