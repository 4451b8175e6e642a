package p2pnet

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// idlers opens connections to an address, from another one of this machine, and says
// nothing on them. They are open until the end of the test.
func idlers(t *testing.T, from, to string, n int) (conns []net.Conn) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range n {
		conn, err := dialer.DialContext(t.Context(), "tcp", to)
		if err != nil && from != "127.0.0.1" {
			t.Skipf("this machine does not have the address %s: %v", from, err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// ended waits until the other end has closed a connection.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	over := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, conn)
		over <- err
	}()
	receive(t, "a connection that gave way is closed", over)
}

// More connections than there are places, on which nobody says anything, keep no
// newcomer out, neither from another block of addresses nor from the very same
// address; the log names the block, and the peer itself still dials.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	const crowd, tries = 300, 8
	for name, from := range map[string]string{"127.0.1.0/24": "127.0.1.1", "127.0.0.0/24": "127.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			config := loopback()
			log, logs := logged()
			config.Log = log
			victim := start(t, config)
			conns := idlers(t, from, hostPort(t, victim), crowd)
			eventually(t, "all of them have come", func() bool { return victim.Stats().GaveWay >= crowd-maxHandshakes })
			in := 0
			for range tries {
				if _, err := start(t, loopback()).Connect(t.Context(), victim.JoinAddresses()[0]); err != nil {
					t.Log(err)
				} else {
					in++
				}
			}
			if in != tries {
				t.Errorf("%d of %d newcomers get in", in, tries)
			}
			if _, err := victim.Connect(t.Context(), start(t, loopback()).JoinAddresses()[0]); err != nil {
				t.Errorf("the peer itself does not get out: %v", err)
			}
			for _, conn := range conns[:crowd-maxHandshakes] {
				ended(t, conn)
			}
			if n := victim.Stats().GaveWay; n < crowd-maxHandshakes {
				t.Errorf("%d connections are counted", n)
			}
			for _, line := range logs.FilterMessageSnippet("no key was shown").All() {
				if line.Level != zap.WarnLevel || line.ContextMap()["block"] != name {
					t.Fatalf("the log says %v", line.ContextMap())
				}
			}
		})
	}
}

// entrance is a door of which a test sees who is let out.
type entrance struct {
	*door
	members map[peer.ID]bool
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	e := &entrance{members: make(map[peer.ID]bool)}
	var err error
	if e.door, err = newDoor(Limits{}.withDefaults(), func(id peer.ID) bool { return e.members[id] }, new(atomic.Uint64), zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	return e
}

type visitor struct {
	*caller
	out bool
}

func (v *visitor) Close() error { v.out = true; return nil }

func (e *entrance) visit(from string) *visitor {
	v := new(visitor)
	v.caller = e.enter(v, &network.NullScope{}, netip.MustParseAddr(from))
	return v
}

// visits has n come, from addresses that are made of their number.
func (e *entrance) visits(n int, from func(i int) string) {
	for i := range n {
		e.visit(from(i))
	}
}

// What a handshake can rely on while connections come without end: another block, and
// another address of the same block, is not touched at all; who shares the very
// address with them, or meets with ones from everywhere, keeps its place until as many
// have come after it as there are places.
func TestWhoGivesWayAtTheDoor(t *testing.T) {
	const flood = 4 * maxHandshakes
	anywhere := func(i int) string { return fmt.Sprintf("10.%d.%d.1", i>>8, i&255) }
	for _, c := range []struct {
		name  string
		from  string
		flood func(i int) string
		stays int // how many may come after it at the least; 0 if as many as like
	}{
		{"another block", "192.0.2.1", func(int) string { return "203.0.113.7" }, 0},
		{"another address of the block", "203.0.113.8", func(int) string { return "203.0.113.7" }, 0},
		{"the same address", "203.0.113.7", func(int) string { return "203.0.113.7" }, maxHandshakes - 1},
		{"from everywhere", "192.0.2.1", anywhere, maxHandshakes - 1},
		{"another IPv6 block", "2001:db8:1::1", func(i int) string { return fmt.Sprintf("2001:db8:2:%x::%x", i, i) }, 0},
		{"another IPv6 home", "2001:db8:1:100::1", func(i int) string { return fmt.Sprintf("2001:db8:1:2%02x::%x", i&255, i) }, 0},
		{"IPv4 in IPv6", "::ffff:192.0.2.1", func(int) string { return "203.0.113.7" }, 0},
	} {
		e := newEntrance(t)
		e.visits(flood, c.flood)
		v := e.visit(c.from)
		if v.out || len(e.silent.callers) != maxHandshakes {
			t.Fatalf("%s: out at once, %d are waiting", c.name, len(e.silent.callers))
		}
		stayed := 0
		for ; stayed < flood && !v.out; stayed++ {
			e.visit(c.flood(flood + stayed))
		}
		if c.stays == 0 && v.out || c.stays > 0 && (stayed-1 != c.stays) {
			t.Errorf("%s: out %v, after %d others", c.name, v.out, stayed)
		}
		_ = v.SetPeer("proven")
		v.Done()
		for _, w := range e.silent.callers {
			if w == v.caller {
				t.Errorf("%s: who has proven its key takes a place", c.name)
			}
		}
	}
}

// Members come back, from wherever they have been connected before: they do not give
// way at all. One home has a few such places, so that who shares an address with a
// member gains little, and all homes together half.
func TestMembersComeFirstAtTheDoor(t *testing.T) {
	e := newEntrance(t)
	anywhere := func(i int) string { return fmt.Sprintf("10.%d.%d.1", i>>8, i&255) }
	const home = "203.0.113.7"
	earlier := e.visit(home)
	_ = earlier.SetPeer("member")
	if e.homes.Len() != 0 {
		t.Error("a stranger's home is remembered")
	}
	e.members["member"] = true // since it was connected
	earlier.Done()
	back := e.visit(home)
	e.visits(4*maxHandshakes, anywhere)
	if back.out {
		t.Error("a member gives way to strangers")
	}
	e.visits(4*maxHandshakes, func(int) string { return home })
	if back.out {
		t.Error("a member gives way to strangers of its own address")
	}
	kept := 0
	for _, w := range e.silent.callers {
		if w.expected {
			kept++
		}
	}
	if kept != expectedPerHome {
		t.Errorf("%d places are kept for one home", kept)
	}
	for i := range 1000 {
		v := e.visit(anywhere(i))
		_ = v.SetPeer("member")
		v.Done()
	}
	e.visits(4*maxHandshakes, anywhere)
	if v := e.visit("192.0.2.1"); v.out || len(e.silent.callers) != maxHandshakes || e.homes.Len() > maxHomes {
		t.Error("members leave no place for strangers")
	}
	kept = 0
	for _, w := range e.silent.callers {
		if w.expected {
			kept++
		}
	}
	if kept != maxHandshakes/2 {
		t.Errorf("%d places are kept for members", kept)
	}
}

// In a run that is closed to strangers too, and where every one of many idle
// connections comes from a block of its own, a member that was here gets in again.
func TestAMemberGetsInAgainAmongIdleConnections(t *testing.T) {
	const crowd, blocks = 512, 32
	friend := start(t, loopback())
	config := loopback()
	config.Admit = func(id seam.PeerID) error {
		if id != friend.Self() {
			return errStranger
		}
		return nil
	}
	victim := start(t, config)
	handle(t, victim, speak, run, echo)
	victim.Learn(friend.Self(), friend.Addresses())
	friend.Learn(victim.Self(), victim.Addresses())
	for again := range 8 {
		if got := ask(t, open(t, friend, victim, speak, run), "in"); got != "in" {
			t.Fatalf("a member hears %q", got)
		}
		victim.Disconnect(friend.Self())
		eventually(t, "disconnected", func() bool { return friend.Connections() == 0 && victim.Connections() == 0 })
		if again > 0 {
			continue
		}
		for block := range blocks {
			idlers(t, fmt.Sprintf("127.0.%d.1", block+1), hostPort(t, victim), crowd/blocks)
		}
		eventually(t, "all of them have come", func() bool {
			return victim.Stats().GaveWay >= crowd-maxHandshakes
		})
	}
}

// prove connects from an address of this machine, proves a key, and says nothing more.
func prove(t *testing.T, from string, seed byte, to *Transport) error {
	t.Helper()
	conn := idlers(t, from, hostPort(t, to), 1)[0]
	if _, err := conn.Write(appendToken(appendToken(nil, multistream), libp2ptls.ID)); err != nil {
		return err
	}
	if err := newAnswer(libp2ptls.ID).read(conn); err != nil {
		return err
	}
	_, err := secured(t, seed).SecureOutbound(t.Context(), conn, to.id)
	return err
}

// Strangers that prove a key each, and then hold their connections, keep no newcomer out
// either, and cost no member its connection.
func TestStrangersKeepNobodyOut(t *testing.T) {
	const tries = 8
	config := loopback()
	config.Limits.Connections = 64
	log, logs := logged()
	config.Log = log
	victim, friend := start(t, config), start(t, loopback())
	handle(t, victim, speak, run, echo)
	friend.Learn(victim.Self(), victim.Addresses())
	victim.Learn(friend.Self(), friend.Addresses())
	open := open(t, friend, victim, speak, run)
	for seed := range config.Limits.Connections + 16 {
		if err := prove(t, "127.0.1.1", byte(seed), victim); err != nil {
			t.Logf("stranger %d does not get in: %v", seed, err)
		}
	}
	in := 0
	for range tries {
		if _, err := start(t, loopback()).Connect(t.Context(), victim.JoinAddresses()[0]); err != nil {
			t.Log(err)
		} else {
			in++
		}
	}
	if in != tries {
		t.Errorf("%d of %d newcomers get in", in, tries)
	}
	if got := ask(t, open, "still here"); got != "still here" {
		t.Errorf("a member hears %q", got)
	}
	lines := logs.FilterMessageSnippet("no member").All()
	if len(lines) == 0 || lines[0].ContextMap()["block"] != "127.0.1.0/24" {
		t.Errorf("the log says %v", lines)
	}
}
