package peer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// digesting is a peer of a run with a key that tells the others of itself.
func digesting(t *testing.T, join ...string) *peer.Peer {
	t.Helper()
	network := peer.Network{
		Listen: []string{"127.0.0.1:0"}, Admission: peer.Admission{RunKey: runKey}, Control: control.Config{Digests: time.Second},
	}
	return start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: network})
}

// latest is the number of the last digest that a peer has heard of another.
func latest(p, of *peer.Peer) uint64 {
	for _, d := range p.Digests() {
		if d.ID == of.Self() {
			return d.Sequence
		}
	}
	return 0
}

// eavesdrop takes part in the run's topic without its key.
func eavesdrop(t *testing.T, at transport.Topics) (heard *atomic.Int64) {
	t.Helper()
	heard = new(atomic.Int64)
	topic, err := at.Topic("murmuration/1/digits", nil, func(transport.PeerID, []byte) transport.Verdict {
		heard.Add(1)
		return transport.Drop
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { topic.Close() })
	return heard
}

// TestRunKeyGuardsTheTopicOverLoopback: a process that does not know the run's key hears none
// of the digests that those who do hear of each other, over gossipsub, of which each is a
// neighbour, whoever has connected with whom before it was known to take part.
func TestRunKeyGuardsTheTopicOverLoopback(t *testing.T) {
	t.Parallel()
	mallory, err := p2pnet.New(p2pnet.Config{Listen: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mallory.Close() })
	outside := eavesdrop(t, mallory)
	host := digesting(t)
	if _, err := mallory.Connect(t.Context(), host.JoinAddresses()[0]); err != nil {
		t.Fatal(err)
	}
	friend := digesting(t, host.JoinAddresses()...)
	soon(t, "the members have heard three digests of each other", func() bool { return latest(host, friend) >= 3 && latest(friend, host) >= 3 })
	if heard := outside.Load(); heard != 0 {
		t.Errorf("who does not know the key has heard %d", heard)
	}
}
