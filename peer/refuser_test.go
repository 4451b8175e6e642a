package peer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/topology"
)

// comparer counts how often memberships are compared.
type comparer struct {
	seam.Membership
	times *atomic.Int64
}

func (c comparer) Signed() []byte                             { return nil }
func (c comparer) Heard(seam.PeerID, []byte) (bool, error)    { return false, nil }
func (c comparer) Compare(context.Context, seam.PeerID) error { c.times.Add(1); return nil }

// TestWhoRefusesForEverIsNotToldForEver: a member that takes nobody for a member, whatever
// it has been told, costs a comparison of all that is known now and then.
func TestWhoRefusesForEverIsNotToldForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network, times := memnet.New(memnet.Config{}), new(atomic.Int64)
		reaching := inMemory(t, network, "host", "digits")
		reaching.Membership = comparer{reaching.Membership, times}
		reaching.Reach = peer.Unreachable // and so active
		host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: reaching, Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}}}})
		if err := step(t, host, idle); err != nil {
			t.Fatal(err)
		}
		transport, err := network.Transport("0-refuser")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { transport.Close() })
		var asked atomic.Int64
		stop, err := transport.Handle(seam.ProtocolExchange, "digits", func(stream seam.Stream) {
			defer stream.Close()
			asked.Add(1)
			header, _, _ := wire.NewReader(stream, 0).Next()
			frame, _ := wire.Pack(nil, header.Exchange, wire.Refuse{Reason: wire.ReasonNotMember})
			stream.Write(frame)
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		membership, err := network.Membership(transport, "digits")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { membership.Close() })
		if _, err = transport.Connect(t.Context(), host.JoinAddresses()[0]); err == nil {
			err = membership.Announce(seam.Record{Peer: transport.Self(), Run: "digits", Incarnation: 1, Role: uint8(topology.Passive)})
		}
		if err == nil {
			err = membership.Join(t.Context(), host.Self())
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			if err := step(t, host, idle); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%s asked %d times, compared %d times", host.Stats().Role, asked.Load(), times.Load())
		if n := times.Load(); n < 1 || n > 15 {
			t.Errorf("memberships were compared %d times in five minutes, want a few", n)
		}
	})
}
