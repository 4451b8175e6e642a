package acceptlimit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const places = 256

// entrance is a door of which a test sees who is let out.
type entrance struct {
	*Limiter
	members map[peer.ID]bool
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	e := &entrance{members: make(map[peer.ID]bool)}
	e.Limiter = New(places, 2*places, func(id peer.ID) bool { return e.members[id] }, func() {}, zap.NewNop())
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
	const flood = 4 * places
	anywhere := func(i int) string { return fmt.Sprintf("10.%d.%d.1", i>>8, i&255) }
	for _, c := range []struct {
		name  string
		from  string
		flood func(i int) string
		stays int // how many may come after it at the least; 0 if as many as like
	}{
		{"another block", "192.0.2.1", func(int) string { return "203.0.113.7" }, 0},
		{"another address of the block", "203.0.113.8", func(int) string { return "203.0.113.7" }, 0},
		{"the same address", "203.0.113.7", func(int) string { return "203.0.113.7" }, places - 1},
		{"from everywhere", "192.0.2.1", anywhere, places - 1},
		{"another IPv6 block", "2001:db8:1::1", func(i int) string { return fmt.Sprintf("2001:db8:2:%x::%x", i, i) }, 0},
		{"another IPv6 home", "2001:db8:1:100::1", func(i int) string { return fmt.Sprintf("2001:db8:1:2%02x::%x", i&255, i) }, 0},
		{"IPv4 in IPv6", "::ffff:192.0.2.1", func(int) string { return "203.0.113.7" }, 0},
	} {
		e := newEntrance(t)
		e.visits(flood, c.flood)
		v := e.visit(c.from)
		if v.out || len(e.silent.callers) != places {
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
	e.visits(4*places, anywhere)
	if back.out {
		t.Error("a member gives way to strangers")
	}
	e.visits(4*places, func(int) string { return home })
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
	e.visits(4*places, anywhere)
	if v := e.visit("192.0.2.1"); v.out || len(e.silent.callers) != places || e.homes.Len() > maxHomes {
		t.Error("members leave no place for strangers")
	}
	kept = 0
	for _, w := range e.silent.callers {
		if w.expected {
			kept++
		}
	}
	if kept != places/2 {
		t.Errorf("%d places are kept for members", kept)
	}
}

// TestBlockIsWhatOneOwnerHas: neighbours share one, however their address is written.
func TestBlockIsWhatOneOwnerHas(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.0/24", "192.0.2.200": "192.0.2.0/24", "::ffff:192.0.2.9": "192.0.2.0/24",
		"2001:db8:1:2::3": "2001:db8:1::/48", "2001:db8:1:ffff::4": "2001:db8:1::/48",
	} {
		if got := BlockOf(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("%s is of block %q, want %q", address, got, want)
		}
	}
}

// failing is a listener that accepts nothing.
type failing struct {
	transport.GatedMaListener
	err error
}

func (f failing) Accept() (manet.Conn, network.ConnManagementScope, error) {
	return nil, nil, &net.OpError{Op: "accept", Net: "tcp", Err: f.err}
}

// Libp2p closes a listener for good after an error that does not call itself temporary.
func TestAListenerOutlivesItsErrors(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	limiter := New(places, places, nil, nil, zap.New(core))
	for _, err := range []error{syscall.EPROTO, syscall.ENOBUFS, os.NewSyscallError("accept4", syscall.EPERM), syscall.EMFILE, net.ErrClosed} {
		_, _, got := guarded{failing{err: err}, limiter}.Accept()
		temporary, is := errors.AsType[interface {
			error
			Temporary() bool
		}](got)
		if goesOn := is && temporary.Temporary(); goesOn != (err != net.ErrClosed) || !errors.Is(got, err) {
			t.Errorf("%v: the listener goes on: %v, with %v", err, goesOn, got)
		}
	}
	if n := logged.Len(); n != 1 {
		t.Errorf("%d warnings, want one a minute", n)
	}
}
