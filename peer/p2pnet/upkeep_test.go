package p2pnet

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestOneConnectionWhereTwoDialAtOnce: members hear of each other by the same news
// and dial each other in the same moment; one connection stays, whichever won, and
// what is said meanwhile arrives.
func TestOneConnectionWhereTwoDialAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		a, b := start(t, loopback()), start(t, loopback())
		a.Learn(b.Self(), b.Addresses())
		b.Learn(a.Self(), a.Addresses())
		handle(t, a, transport.ProtocolHello, run, echo)
		handle(t, b, transport.ProtocolHello, run, echo)
		var both sync.WaitGroup
		for _, ends := range [][2]*Transport{{a, b}, {b, a}} {
			both.Go(func() {
				s, err := ends[0].Open(t.Context(), ends[1].Self(), transport.ProtocolHello, run)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if _, err := io.WriteString(s, "here"); err != nil {
					t.Error(err)
				}
				var back [4]byte
				if _, err := io.ReadFull(s, back[:]); err != nil || string(back[:]) != "here" {
					t.Errorf("%q came back, error %v", back, err)
				}
			})
		}
		both.Wait()
		eventually(t, "one connection joins them", func() bool {
			return len(a.swarm.Conns()) == 1 && len(b.swarm.Conns()) == 1 && a.Connections() == 1 && b.Connections() == 1
		})
	}
}

// Nothing is remembered of connections that have ended, lanes and those in use included.
func TestEndedConnectionsAreForgotten(t *testing.T) {
	a, b := start(t, loopback()), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	b.Learn(a.Self(), a.Addresses())
	handle(t, a, speak, run, echo)
	handle(t, b, speak, run, echo)
	openLane(t, a, b, 1)
	eventually(t, "the lane is there", func() bool { return b.Connections() == 1 })
	if got := ask(t, open(t, b, a, speak, run), "back"); got != "back" {
		t.Errorf("echo on the other's lane is %q", got)
	}
	open(t, a, b, speak, run)
	if n := len(a.lanes.swarms[1].Peerstore().PeersWithKeys()); n != 1 {
		t.Errorf("%d keys of a lane", n)
	}
	ended := append(a.swarm.Conns(), a.lanes.conns()...)
	a.Disconnect(b.Self())
	for _, end := range []*Transport{a, b} {
		eventually(t, "nothing is remembered", func() bool {
			for _, c := range ended {
				end.upkeep.note(c, usage{ours: true}) // a stream that came too late
			}
			end.upkeep.mu.Lock()
			defer end.upkeep.mu.Unlock()
			return len(end.upkeep.conns) == 0
		})
	}
	eventually(t, "no key is kept", func() bool { return len(a.lanes.swarms[1].Peerstore().PeersWithKeys()) == 0 })
}

// TestUnusedSecondConnectionIsClosed: the end that has dialled it and never used it
// closes it, since the other takes it for a lane.
func TestUnusedSecondConnectionIsClosed(t *testing.T) {
	t.Parallel()
	pairs := make([][2]*Transport, 8)
	for i := range pairs {
		a, b := start(t, loopback()), start(t, loopback())
		pairs[i] = [2]*Transport{a, b}
		a.Learn(b.Self(), b.Addresses())
		b.Learn(a.Self(), a.Addresses())
		handle(t, b, transport.ProtocolHello, run, echo)
		var both sync.WaitGroup
		both.Go(func() { _, _ = a.Connect(t.Context(), b.Addresses()[0]) })
		both.Go(func() { _, _ = b.Connect(t.Context(), a.Addresses()[0]) })
		both.Wait()
		if got := ask(t, open(t, a, b, transport.ProtocolHello, run), "one"); got != "one" {
			t.Fatalf("%q came back", got)
		}
	}
	for _, p := range pairs { // all of them wait until a connection is no longer young
		eventually(t, "one connection joins them", func() bool { return len(p[0].swarm.Conns()) == 1 && len(p[1].swarm.Conns()) == 1 })
	}
}

// TestSecondConnectionStaysWhileUsed: one that carries an exchange is not closed
// under it.
func TestSecondConnectionStaysWhileUsed(t *testing.T) {
	t.Parallel()
	a, b := start(t, loopback()), start(t, loopback())
	if a.id < b.id {
		a, b = b, a // the connection that a dials is the one to go
	}
	a.Learn(b.Self(), b.Addresses())
	b.Learn(a.Self(), a.Addresses())
	handle(t, b, speak, run, echo)
	handle(t, a, transport.ProtocolHello, run, echo)
	exchange := open(t, a, b, speak, run)
	if _, err := io.WriteString(exchange, "one"); err != nil {
		t.Fatal(err)
	}
	// To a, a lane on which b says hello is a connection that b has dialled at once.
	hello, err := b.OpenLane(t.Context(), a.Self(), transport.ProtocolHello, run, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer hello.Reset()
	if _, err := io.WriteString(hello, "x"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a knows of both", func() bool { return a.upkeep.second(b.id, a.swarm.ConnsToPeer(b.id)) != nil })
	if !a.upkeep.closeSeconds() {
		t.Error("the connection was given up under an exchange")
	}
	if got := ask(t, exchange, "two"); got != "onetwo" {
		t.Errorf("%q came back over it", got)
	}
	exchange.Close()
	eventually(t, "it is closed after that", func() bool { return len(a.swarm.Conns()) == 1 })
}

// TestIdleConnectionsAreClosed: connections would otherwise be held for ever, one for
// each member that ever was a neighbour.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	config := loopback()
	config.Limits.Idle = 300 * time.Millisecond
	a, b := start(t, config), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, run, echo)
	s := open(t, a, b, speak, run)
	if _, err := io.WriteString(s, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * config.Limits.Idle) // against the real clock: sockets are real
	if a.Connections() != 1 {
		t.Fatal("a connection with a stream was closed")
	}
	s.Close()
	eventually(t, "the idle connection is closed", func() bool { return a.Connections() == 0 && b.Connections() == 0 })
	if got := ask(t, open(t, a, b, speak, run), "again"); got != "again" {
		t.Errorf("the next stream brings %q back", got)
	}
}
