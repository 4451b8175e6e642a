package p2pnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/seed-97356399/murmuration/peer/transport"
)

func openLane(t testing.TB, from, to *Transport, lane int) transport.Stream {
	t.Helper()
	s, err := from.OpenLane(t.Context(), to.Self(), speak, run, lane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Reset)
	return s
}

// laneConn is the connection of a lane that is up.
func laneConn(t testing.TB, from, to *Transport, lane int) network.Conn {
	t.Helper()
	conns := slices.DeleteFunc(from.lanes.swarms[lane].ConnsToPeer(to.id), network.Conn.IsClosed) // which is gone soon
	if len(conns) != 1 {
		t.Fatalf("lane %d has %d connections", lane, len(conns))
	}
	return conns[0]
}

// TestLanes opens all lanes both ways, twice: each is one more connection, which
// both ends count, and carries streams like any other.
func TestLanes(t *testing.T) {
	t.Parallel()
	a, b := start(t, loopback()), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	b.Learn(a.Self(), a.Addresses())
	handle(t, a, speak, run, echo)
	handle(t, b, speak, run, echo)
	first := open(t, a, b, speak, run)
	want := 1
	for _, way := range [][2]*Transport{{a, b}, {b, a}} {
		for range 2 {
			for lane := 1; lane <= transport.MaxLane; lane++ {
				s := openLane(t, way[0], way[1], lane)
				if s.Remote() != way[1].Self() {
					t.Errorf("lane %d leads to %s", lane, s.Remote())
				}
				if got := ask(t, s, "hello"); got != "hello" {
					t.Errorf("echo on lane %d is %q", lane, got)
				}
			}
		}
		want += transport.MaxLane
		for _, end := range way {
			eventually(t, fmt.Sprintf("there are %d connections", want), func() bool { return end.Connections() == want })
		}
	}
	if got := ask(t, first, "hello"); got != "hello" {
		t.Errorf("echo beside the lanes is %q", got)
	}
}

// TestLaneIsDialledOnce asks for one lane from many sides at once.
func TestLaneIsDialledOnce(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			s, err := a.OpenLane(t.Context(), b.Self(), speak, run, 1)
			if err != nil {
				t.Errorf("opening: %v", err)
				return
			}
			s.Close()
		})
	}
	asking.Wait()
	if got := a.Connections(); got != 1 {
		t.Errorf("%d connections, want 1: the lane", got)
	}
}

func TestLaneRefusals(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	for _, lane := range []int{-1, 0, transport.MaxLane + 1} {
		if _, err := a.OpenLane(t.Context(), b.Self(), speak, run, lane); !errors.Is(err, transport.ErrLane) {
			t.Errorf("lane %d: %v, want ErrLane", lane, err)
		}
	}
	for name, c := range map[string]struct {
		protocol transport.Protocol
		run      string
		want     error
	}{
		"run":      {speak, "letters", transport.ErrUnknownRun},
		"protocol": {"/murmuration/exchange/2", run, transport.ErrUnknownProtocol},
	} {
		s, err := a.OpenLane(t.Context(), b.Self(), c.protocol, c.run, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, c.want) {
			t.Errorf("unknown %s: %v, want %v", name, err, c.want)
		}
		s.Reset()
	}
	if _, err := a.OpenLane(t.Context(), a.Self(), speak, run, 1); !errors.Is(err, transport.ErrSelf) {
		t.Errorf("a lane to oneself: %v", err)
	}
	nowhere := start(t, Config{Listen: []string{}})
	if _, err := a.OpenLane(t.Context(), nowhere.Self(), speak, run, 1); !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("a lane to nowhere: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.OpenLane(ctx, b.Self(), speak, run, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// TestLaneIdentity learns an address at which another peer answers.
func TestLaneIdentity(t *testing.T) {
	a, b := pair(t)
	other := start(t, loopback())
	handle(t, b, speak, run, echo)
	a.Learn(b.Self(), other.Addresses())
	_, err := a.OpenLane(t.Context(), b.Self(), speak, run, 1)
	wrong, ok := errors.AsType[*WrongIdentityError](err)
	if !ok || wrong.Proved != other.Self() || !errors.Is(err, transport.ErrUnreachable) {
		t.Errorf("a lane to an impostor: %v", err)
	}
	a.Learn(b.Self(), append(other.Addresses(), b.Addresses()...))
	if got := ask(t, openLane(t, a, b, 1), "x"); got != "x" {
		t.Errorf("echo is %q", got)
	}
	if n := a.Connections(); n != 1 {
		t.Errorf("%d connections, want 1: nothing with the impostor", n)
	}
}

func TestLanesTakeAddressesInTurn(t *testing.T) {
	a := start(t, Config{Listen: []string{}})
	b := start(t, Config{Listen: []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}})
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, run, echo)
	ask(t, open(t, a, b, speak, run), "x")
	used := map[string]int{a.upkeep.connected(b.id).RemoteMultiaddr().String(): 1}
	for lane := 1; lane <= 5; lane++ {
		ask(t, openLane(t, a, b, lane), "x")
		used[laneConn(t, a, b, lane).RemoteMultiaddr().String()]++
	}
	for _, at := range b.Addresses() {
		if used[at] != 2 {
			t.Errorf("%d of 6 connections go to %s, want 2 to each address: %v", used[at], at, used)
		}
	}
}

// TestLanePassesOverSilence has an address that takes connections and says
// nothing: it is tried once.
func TestLanePassesOverSilence(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	knocks := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				close(knocks)
				return
			}
			knocks <- conn
		}
	}()
	a := start(t, Config{Listen: []string{}, handshakeTimeout: 2 * time.Second})
	b := start(t, loopback())
	handle(t, b, speak, run, echo)
	a.Learn(b.Self(), append(b.Addresses(), mute.Addr().String()))
	for lane := 1; lane <= 4; lane++ {
		if got := ask(t, openLane(t, a, b, lane), "x"); got != "x" {
			t.Errorf("echo on lane %d is %q", lane, got)
		}
	}
	mute.Close()
	n := 0
	for conn := range knocks {
		conn.Close()
		n++
	}
	if n != 1 {
		t.Errorf("the silent address was dialled %d times, want once", n)
	}
}

// TestDeadLaneIsDialledAnew cuts a lane at the other end.
func TestDeadLaneIsDialledAnew(t *testing.T) {
	a, b := pair(t)
	handle(t, b, speak, run, echo)
	s := openLane(t, a, b, 1)
	if _, err := io.WriteString(s, "x"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lane is there", func() bool { return b.Connections() == 1 })
	old := laneConn(t, a, b, 1)
	b.swarm.ConnsToPeer(a.id)[0].Close()
	if _, err := io.ReadAll(s); err == nil {
		t.Error("a stream of a dead lane ended well")
	}
	eventually(t, "the lane is known to be dead", old.IsClosed)
	if got := ask(t, openLane(t, a, b, 1), "x"); got != "x" {
		t.Errorf("echo is %q", got)
	}
	if laneConn(t, a, b, 1) == old {
		t.Error("the connection is the old one")
	}
}

// TestOtherEndMayUseALane leaves the other end nothing but a lane to open on.
func TestOtherEndMayUseALane(t *testing.T) {
	a, b := pair(t)
	handle(t, a, speak, run, echo)
	handle(t, b, speak, run, echo)
	s := openLane(t, a, b, 1)
	eventually(t, "the lane is there", func() bool { return b.Connections() == 1 })
	if got := ask(t, open(t, b, a, speak, run), "back"); got != "back" {
		t.Errorf("echo on the other's lane is %q", got)
	}
	if got := ask(t, s, "forth"); got != "forth" {
		t.Errorf("echo is %q", got)
	}
}

// TestOpenKeepsOffLanes: the end that did not dial a lane cannot see that it is
// one, and it may be closed at any time.
func TestOpenKeepsOffLanes(t *testing.T) {
	a, b := pair(t)
	handle(t, a, speak, run, func(s transport.Stream) { io.WriteString(s, "x"); io.ReadAll(s); s.Close() })
	handle(t, b, speak, run, echo)
	ask(t, open(t, a, b, speak, run), "x")
	for lane := 1; lane <= 3; lane++ {
		openLane(t, a, b, lane) // libp2p prefers the connection with most streams
		openLane(t, a, b, lane)
	}
	eventually(t, "all lanes are there", func() bool { return b.Connections() == 4 })
	for range 5 {
		if _, err := io.ReadFull(open(t, b, a, speak, run), make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for lane := 1; lane <= 3; lane++ {
		conn := laneConn(t, a, b, lane)
		eventually(t, "a lane carries but the 2 streams opened on it, once libp2p's identify has ended", func() bool {
			return conn.Stat().NumStreams == 2
		})
	}
}

func TestIdleLanesAreClosed(t *testing.T) {
	t.Parallel()
	a, b := start(t, Config{Listen: []string{}, Limits: Limits{Idle: 100 * time.Millisecond}}), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, run, echo)
	ask(t, open(t, a, b, speak, run), "x")
	busy := openLane(t, a, b, 1)
	for lane := 2; lane <= 4; lane++ {
		s := openLane(t, a, b, lane)
		ask(t, s, "x")
		s.Close()
	}
	for _, end := range []*Transport{a, b} {
		eventually(t, "the idle lanes are closed, the others not", func() bool { return end.Connections() == 2 })
	}
	if got := ask(t, busy, "still here"); got != "still here" {
		t.Errorf("echo on the lane in use is %q", got)
	}
	busy.Close()
	eventually(t, "the last lane is closed", func() bool { return a.Connections() == 1 })
	openLane(t, a, b, 3).Close() // and the sweep has not ended for good
	eventually(t, "a new lane is closed too", func() bool { return a.Connections() == 1 })
}

func TestCloseEndsLanes(t *testing.T) {
	for _, closing := range []string{"the dialler", "the listener"} {
		a, b := pair(t)
		handle(t, b, speak, run, echo)
		s := openLane(t, a, b, 1)
		if _, err := io.WriteString(s, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			ended <- err
		}()
		if closing == "the dialler" {
			a.Close()
		} else {
			b.Close()
		}
		if err := receive(t, "the read ends", ended); err == nil || err == io.EOF {
			t.Errorf("%s closed: the read ended with %v", closing, err)
		}
		for _, end := range []*Transport{a, b} {
			eventually(t, "no connection is left", func() bool { return end.Connections() == 0 })
		}
		a.Close()
		if _, err := a.OpenLane(t.Context(), b.Self(), speak, run, 1); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("opening after Close: %v, want ErrClosed", err)
		}
	}
}

// TestLanesAreBounded: they count among the connections that a process may have.
func TestLanesAreBounded(t *testing.T) {
	const most = 4
	a, b := start(t, Config{Listen: []string{}, Limits: Limits{Connections: most}}), start(t, loopback())
	a.Learn(b.Self(), b.Addresses())
	handle(t, b, speak, run, echo)
	for lane := 1; lane <= transport.MaxLane; lane++ {
		s, err := a.OpenLane(t.Context(), b.Self(), speak, run, lane)
		if lane > most {
			if !errors.Is(err, network.ErrResourceLimitExceeded) {
				t.Errorf("lane %d of a process with at most %d connections: %v", lane, most, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("lane %d: %v", lane, err)
		}
		defer s.Reset()
	}
	if n := a.Connections(); n != most {
		t.Errorf("%d connections, want %d", n, most)
	}
}

// Pitfall: a swarm can dial only with the transports that it has. One whose first lane led
// through a relay had none for a direct one.
func TestLaneBesideOneThroughARelay(t *testing.T) {
	relay := start(t, Config{Listen: []string{"127.0.0.1:0"}, Relay: Relay{Serve: true}})
	hidden := start(t, Config{Listen: []string{}, Relay: Relay{Via: relay.JoinAddresses()}})
	from, direct := start(t, Config{Listen: []string{}}), start(t, loopback())
	from.Learn(relay.Self(), relay.Addresses())
	from.Learn(hidden.Self(), hidden.Addresses())
	from.Learn(direct.Self(), direct.Addresses())
	handle(t, hidden, speak, run, echo)
	handle(t, direct, speak, run, echo)
	eventually(t, "the relay passes a lane on", func() bool {
		s, err := from.OpenLane(t.Context(), hidden.Self(), speak, run, 1)
		if err != nil {
			return false
		}
		defer s.Reset()
		return ask(t, s, "hello") == "hello"
	})
	if got := ask(t, openLane(t, from, direct, 1), "hello"); got != "hello" {
		t.Errorf("echo on a direct lane is %q", got)
	}
}
