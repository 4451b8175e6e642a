package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// acknowledge has a rogue propose an exchange and then acknowledge nothing, again and
// again: each frame is in order, so that no wait for one is ever too long.
func (r *rogue) acknowledge(every time.Duration) {
	r.t.Helper()
	stream, frames := r.open()
	if _, err := stream.Write(r.propose(nil)); err != nil {
		r.t.Fatal(err)
	}
	if header, _, err := frames.Next(); err != nil || header.Type != wire.TypeAccept {
		r.t.Fatalf("the host answers %v, %v", header.Type, err)
	}
	frame := wire.Reserve(nil)
	if err := wire.Seal(frame, wire.Header{Type: wire.TypeAck, Exchange: 1}); err != nil {
		r.t.Fatal(err)
	}
	again, done := time.NewTicker(every), make(chan struct{})
	r.t.Cleanup(func() {
		again.Stop()
		close(done)
	})
	go func() {
		for {
			select {
			case <-again.C:
				stream.Write(frame) // fails once the host has had enough
			case <-done:
				stream.Reset()
				return
			}
		}
	}()
}

// TestAnExchangeEndsAtItsDeadline: a partner that never stalls and never gets anywhere
// is given up when the machine says so.
func TestAnExchangeEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline = 20 * time.Second
		r := newRogueWith(t, peer.Exchange{Deadline: deadline})
		r.acknowledge(time.Second / 2)
		time.Sleep(deadline - time.Second)
		if failed := r.host.Stats().Exchanges.Failed; failed != 0 {
			t.Errorf("%d exchanges failed before the deadline", failed)
		}
		time.Sleep(2 * time.Second)
		if failed := r.host.Stats().Exchanges.Failed; failed != 1 {
			t.Errorf("%d exchanges failed after the deadline, want 1", failed)
		}
	})
}

// TestCloseBreaksExchangesOff: a peer that closes waits for an exchange no longer than
// for a frame.
func TestCloseBreaksExchangesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		place := inMemory(t, network, "host", "digits")
		place.SetStall(3 * time.Second)
		r := newRogueAt(t, network, place, peer.Exchange{Deadline: time.Hour})
		r.acknowledge(time.Second)
		began := time.Now()
		if err := r.host.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("closing took %s", took)
		}
	})
}

// deaf is a transport that opens no stream for exchanges until it is told to give up.
type deaf struct{ transport.Transport }

func (d deaf) Open(ctx context.Context, to transport.PeerID, protocol transport.Protocol, run string) (transport.Stream, error) {
	if protocol == transport.ProtocolExchange {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.Transport.Open(ctx, to, protocol, run)
}

// TestAnOpeningEndsAtTheDeadline: an exchange that is given up does not go on opening
// its stream.
func TestAnOpeningEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(memnet.Config{})
		networks := [2]peer.Network{inMemory(t, network, "0", "digits"), inMemory(t, network, "1", "digits")}
		networks[1].Transport, networks[1].Reach = deaf{networks[1].Transport}, peer.Unreachable
		networks[1].SetStall(time.Minute)
		host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: networks[0]})
		p := start(t, peer.Config{
			Run:      "digits",
			Params:   newModel(),
			Network:  networks[1],
			Join:     []string{"mem:0"},
			Training: peer.Training{Exchange: peer.Exchange{Pace: averaging.Pace{Every: 1}, Deadline: 2 * time.Second}},
		})
		if err := p.WaitMembers(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // for the roles
		for _, p := range []*peer.Peer{host, p} {
			if err := step(t, p, idle); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if failed := p.Stats().Exchanges.Failed; failed != 1 {
			t.Errorf("%d exchanges failed, want 1", failed)
		}
	})
}
