package peer_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// TestADonorKilledMidwayOverLoopback: over TLS on real sockets, with memberlist, a
// donor's process that is gone at once costs its slices and no more.
func TestADonorKilledMidwayOverLoopback(t *testing.T) {
	t.Parallel()
	const donors, victim = 3, 1
	// wait ends in time for the test to say what has not happened.
	wait := func(event <-chan struct{}) bool {
		select {
		case <-event:
			return true
		case <-time.After(time.Minute):
			return false
		}
	}
	var given [donors]atomic.Int64
	var transports [donors]*p2pnet.Transport
	var peers []*peer.Peer
	var armed atomic.Bool // the donors have copied from each other
	killing, killed := make(chan struct{}), make(chan struct{})
	config := func(i int) peer.Config {
		transport, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { transport.Close() })
		c := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Transport: transport}}
		shortRun(i, &c)
		c.Training.Work = peer.Work{}
		c.Training.Exchange.SliceLen = 2050 / stateSlices
		c.Training.Exchange.Pace.Every = 1 << 20
		c.Network.SetStall(time.Minute) // on a busy machine too, only the one that is killed is given up
		if i == victim {
			c.Network.SetStall(time.Second) // bounds its goodbye
		}
		if i < donors {
			transports[i] = transport
			c.Network.Transport = &giver{Transport: transport, alter: func(typ wire.Type, frame []byte) []byte {
				if typ == wire.TypeStateSlice && armed.Load() {
					if i != victim {
						wait(killing) // however late the one to be killed is reached, it has a part in it
					}
					if given[i].Add(1) == 3 && i == victim {
						close(killing)
						go func() {
							transports[victim].Close()
							close(killed)
						}()
					}
				}
				return frame
			}}
		}
		if i > 0 {
			c.Join = transports[0].JoinAddresses()[:1]
		}
		return c
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, p := range peers {
			all.Go(func() { p.Close() }) // of the one that is killed, an error
		}
		all.Wait()
	})
	for i := range donors {
		p, err := peer.Start(t.Context(), config(i))
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, p)
		if err := step(t, p, idle); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range peers {
		if err := p.WaitMembers(t.Context(), donors); err != nil {
			t.Fatal(err)
		}
	}
	waitForModels(t, peers[0])
	armed.Store(true)
	late := start(t, config(donors))
	first := firstSnapshot(t, late)
	if !wait(killed) {
		t.Fatalf("the donor that was to be killed gave %d slices", given[victim].Load())
	}
	for i, v := range newModel().Vector() { // idle steps change nothing
		if first[i] != v {
			t.Fatalf("value %d is %g, the flock's is %g", i, first[i], v)
		}
	}
	s := late.Stats().State
	// What the one that was killed had under way is asked for again; and, since on a busy
	// machine any other may seem slow, so may be what they have under way at the end.
	underWay := int64(donors * (stateSlices / (2 * copying.Donors)))
	all := given[0].Load() + given[1].Load() + given[2].Load()
	t.Logf("%d slices were sent for %d: %+v", all, stateSlices, s)
	if s.Slices != stateSlices || all > stateSlices+underWay || int64(s.Again) > underWay {
		t.Errorf("%d slices were sent for %d, of which %d could be under way: %+v", all, stateSlices, underWay, s)
	}
}

// waitForModels returns when the peer knows of every member that it has a model to give,
// and so tells a newcomer.
func waitForModels(t *testing.T, p *peer.Peer) {
	t.Helper()
	const patience = 2 * time.Minute
	without := func(m control.Member) bool { return m.Steps == 0 }
	for end := time.Now().Add(patience); slices.ContainsFunc(p.Members(), without); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a member still has taken no step: %+v", p.Members())
		}
	}
}
