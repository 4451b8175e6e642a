package peer_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
)

// TestADonorKilledMidwayOverLoopback: over TLS on real sockets, with memberlist, a
// donor's process that is gone at once costs its slices and no more.
func TestADonorKilledMidwayOverLoopback(t *testing.T) {
	const donors = 3
	var given [donors]atomic.Int64
	var transports [donors]*p2pnet.Transport
	var peers []*peer.Peer
	var armed atomic.Bool // the donors have copied from each other
	killed := make(chan struct{})
	config := func(i int) peer.Config {
		transport, err := p2pnet.New(p2pnet.Config{Listen: []string{"127.0.0.1:0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { transport.Close() })
		c := peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{Transport: transport}}
		shortRun(i, &c)
		c.Work = peer.Work{}
		c.Exchange.SliceLen = 2050 / stateSlices
		c.Exchange.Pace.Every = 1 << 20
		c.Exchange.Stall = time.Second // bounds the goodbye of the one that is killed
		if i < donors {
			transports[i] = transport
			c.Network.Transport = &giver{Transport: transport, alter: func(typ wire.Type, frame []byte) []byte {
				if typ == wire.TypeStateSlice && armed.Load() {
					time.Sleep(5 * time.Millisecond) // so that every donor has a part in it
					for range 10 {
						if i == 1 || given[1].Load() >= 3 {
							break
						}
						time.Sleep(5 * time.Millisecond) // however late the one to be killed is reached
					}
					if given[i].Add(1) == 3 && i == 1 {
						go func() {
							transport.Close()
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
	select {
	case <-killed:
	case <-time.After(10 * time.Second):
		t.Fatalf("the donor that was to be killed gave %d slices", given[1].Load())
	}
	for i, v := range newModel().Vector() { // idle steps change nothing
		if first[i] != v {
			t.Fatalf("value %d is %g, the flock's is %g", i, first[i], v)
		}
	}
	s := late.Stats().State
	window := int64(stateSlices / (2 * peer.DefaultDonors))
	all := given[0].Load() + given[1].Load() + given[2].Load()
	t.Logf("%d slices were sent for %d: %+v", all, stateSlices, s)
	if s.Slices != stateSlices || s.Donors < 2 || all > stateSlices+2*window || int64(s.Again) > 2*window {
		t.Errorf("%d slices were sent for %d, in a window of %d: %+v", all, stateSlices, window, s)
	}
}

// waitForModels returns when the peer knows of every member that it has a model to give,
// and so tells a newcomer.
func waitForModels(t *testing.T, p *peer.Peer) {
	t.Helper()
	const patience = 30 * time.Second
	without := func(m peer.Member) bool { return m.Steps == 0 }
	for end := time.Now().Add(patience); slices.ContainsFunc(p.Members(), without); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a member still has taken no step: %+v", p.Members())
		}
	}
}
