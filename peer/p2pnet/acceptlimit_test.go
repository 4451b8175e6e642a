package p2pnet

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/seed-97356399/murmuration/peer/p2pnet/internal/secure"

	"github.com/libp2p/go-libp2p/core/crypto"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/transport"
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
// joiner out, neither from another block of addresses nor from the very same
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
			eventually(t, "all of them have come", func() bool { return victim.Refused()["gave way"] >= crowd-maxHandshakes })
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
			if n := victim.Refused()["gave way"]; n < crowd-maxHandshakes {
				t.Errorf("%d connections are counted", n)
			}
			lines := logs.FilterMessageSnippet("no key was shown").All()
			if len(lines) == 0 {
				t.Error("the log says nothing")
			}
			for _, line := range lines {
				if line.Level != zap.WarnLevel || line.ContextMap()["block"] != name {
					t.Fatalf("the log says %v", line.ContextMap())
				}
			}
		})
	}
}

// In a run that is closed to strangers too, and where every one of many idle
// connections comes from a block of its own, a member that was here gets in again.
func TestAMemberGetsInAgainAmongIdleConnections(t *testing.T) {
	const crowd, blocks = 512, 32
	friend := start(t, loopback())
	config := loopback()
	config.Admit = func(id transport.PeerID) error {
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
		eventually(t, "all of them have come", func() bool { return victim.Refused()["gave way"] >= crowd-maxHandshakes })
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
	key, err := crypto.UnmarshalEd25519PrivateKey(seeded(seed))
	if err != nil {
		return err
	}
	tls, err := secure.New(key, nil, nil)
	if err != nil {
		return err
	}
	_, err = tls.SecureOutbound(t.Context(), conn, to.id)
	return err
}

// Strangers that prove a key each, and then hold their connections, keep no joiner out
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
