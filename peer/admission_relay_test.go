package peer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/topology"
)

// relayOf is a member of a run that relays.
func relayOf(t *testing.T, a peer.Admission) *peer.Peer {
	t.Helper()
	return start(t, peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{
		Listen: []string{"127.0.0.1:0"}, Admission: a, Relay: p2pnet.Relay{Serve: true},
	}})
}

// TestRunKeyGuardsTheRelay: two processes that do not know the run's key send nothing to
// each other through a relay of the run; of a run without one, 8 MiB.
func TestRunKeyGuardsTheRelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		admission peer.Admission
		want      int
	}{{"open", peer.Admission{}, 8 << 20}, {"keyed", peer.Admission{RunKey: runKey}, 0}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			relay := relayOf(t, c.admission)
			core, logs := observer.New(zap.InfoLevel)
			hidden, err := p2pnet.New(p2pnet.Config{Listen: []string{}, Relay: p2pnet.Relay{Via: relay.JoinAddresses()}, Log: zap.New(core)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { hidden.Close() })
			got := make(chan int, 1)
			if _, err := hidden.Handle(transport.ProtocolExchange, "smuggled", func(s transport.Stream) {
				n, _ := io.Copy(io.Discard, s)
				got <- int(n)
				s.Close()
			}); err != nil {
				t.Fatal(err)
			}
			soon(t, "the relay has given a place, or refused one", func() bool {
				return logs.FilterMessageSnippet("through a relay").Len()+logs.FilterMessageSnippet("no place at the relay").Len() > 0
			})
			if sent := smuggle(t, hidden, bytes.Repeat([]byte{1}, 8<<20)); sent {
				if n := <-got; n != c.want {
					t.Errorf("%d bytes came through the relay, want %d", n, c.want)
				}
			} else if c.want != 0 {
				t.Error("nothing came through the relay")
			}
		})
	}
}

// smuggle sends bytes through a relay, from a process of its own, if it can.
func smuggle(t *testing.T, hidden *p2pnet.Transport, load []byte) (sent bool) {
	t.Helper()
	from, err := p2pnet.New(p2pnet.Config{Listen: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	ctx, cancel := context.WithTimeout(t.Context(), controlPatience)
	defer cancel()
	if _, err := from.Connect(ctx, hidden.JoinAddresses()[0]); err != nil {
		return false
	}
	s, err := from.Open(ctx, hidden.Self(), transport.ProtocolExchange, "smuggled")
	if err != nil {
		return false
	}
	defer s.Close()
	if _, err := s.Write(load); err != nil {
		return false
	}
	if err := s.CloseWrite(); err != nil {
		return false
	}
	_, err = s.Read(make([]byte, 1)) // the other end has read all
	return errors.Is(err, io.EOF)
}

// TestUnreachableMembersMeetThroughTheirRelay: of a run with a key, one that can be reached
// through a relay only is joined by another that knows nothing else of the run but the key.
// Both are active, and members of each other, having met; they exchange with the relay.
func TestUnreachableMembersMeetThroughTheirRelay(t *testing.T) {
	t.Parallel()
	key := peer.Admission{RunKey: runKey}
	relay := relayOf(t, key)
	partners := make(chan transport.PeerID, 1<<10)
	behind := func(join ...string) *peer.Peer {
		return start(t, peer.Config{
			Run:    "digits",
			Params: newModel(),
			Join:   join,
			Network: peer.Network{
				Listen: []string{}, Admission: key,
				Reach: peer.Unreachable, Relay: p2pnet.Relay{Via: relay.JoinAddresses()},
			},
			Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}}, Hooks: peer.Hooks{Exchanged: func(e peer.Exchanged) {
				if e.Err == nil {
					partners <- e.Partner
				}
			}}},
		})
	}
	first := behind(relay.JoinAddresses()...)
	waitMembers(t, first, 2)
	second := behind(first.JoinAddresses()...)
	for _, p := range []*peer.Peer{relay, first, second} {
		waitMembers(t, p, 3)
	}
	soon(t, "the two have met", func() bool { return first.Stats().Connections >= 2 && second.Stats().Connections >= 2 })
	for _, of := range []*peer.Peer{first, second} {
		soon(t, "the relay sees that they are active and cannot be dialled", func() bool {
			m := seen(t, relay, of)
			return m.Unreachable && m.Role == topology.Active
		})
	}
	for exchanged := 0; exchanged < 10; {
		for _, p := range []*peer.Peer{first, second} {
			if err := step(t, p, idle); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case partner := <-partners:
			if exchanged++; partner != relay.Self() {
				t.Errorf("exchanged with %s, which is not the relay", partner)
			}
		case <-time.After(100 * time.Millisecond): // the relay may have been busy with both: they ask again after another step
		}
	}
}
