package peer_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/p2pnet"
	"github.com/seed-97356399/murmuration/peer/swim"
	"github.com/seed-97356399/murmuration/peer/transport"
)

var runKey = bytes.Repeat([]byte{7}, 32)

// writeList writes a list of peers; a change is one of the file's time too.
func writeList(t *testing.T, path string, ids ...transport.PeerID) {
	t.Helper()
	text := "# those who train digits\n"
	for i, id := range ids {
		text += "  " + string(id) + " # peer " + strings.Repeat("i", i+1) + "\n\n"
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func waitMembers(t *testing.T, p *peer.Peer, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); p.Stats().Members != n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d members, want %d", p.Stats().Members, n)
		}
	}
}

// place is a transport of a name on a network, to be given to a peer that uses the membership for real networks.
func place(t *testing.T, n *memnet.Network, name string) *memnet.Transport {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// TestRunKeyGuardsTheMembership: a process that knows no key, and asks for no permission but speaks the
// membership's protocol at once, sees nobody and is seen by nobody.
func TestRunKeyGuardsTheMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		member := func(name string, join ...string) *peer.Peer {
			network := peer.Network{Transport: place(t, n, name), Admission: peer.Admission{RunKey: runKey}}
			return start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: network})
		}
		h := member("host")
		f := member("friend", "mem:host")
		waitMembers(t, h, 2)
		rude := place(t, n, "rude")
		m, err := swim.New(swim.Config{Transport: rude, Run: "digits"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := m.Announce(transport.Record{Peer: rude.Self(), Run: "digits", Incarnation: 1}); err != nil {
			t.Fatal(err)
		}
		if err := m.Join(t.Context(), h.Self(), f.Self()); err == nil {
			t.Error("a join without the key succeeded")
		}
		time.Sleep(time.Minute)
		if seen, there := len(m.Members()), h.Stats().Members; seen != 1 || there != 2 {
			t.Errorf("it sees %d members, and the host %d; want itself only, and 2", seen, there)
		}
	})
}

// outsider is a process on real sockets that takes part in nothing.
func outsider(t *testing.T, config p2pnet.Config) *p2pnet.Transport {
	t.Helper()
	config.Listen = []string{}
	tr, err := p2pnet.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// TestAdmissionOverLoopback: on real connections the key and the list hold for whoever is let in, for the
// digests that members tell each other, and for the places that a member gives as a relay. A stranger that
// has the key and is not on the list is refused; who is off the list is put out.
func TestAdmissionOverLoopback(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "allow")
	begin := func(a peer.Admission, join ...string) *peer.Peer {
		return start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: peer.Network{
			Listen: []string{"127.0.0.1:0"}, Admission: a, Relay: p2pnet.Relay{Serve: true}, Control: control.Config{Digests: time.Second},
		}})
	}
	friend := begin(peer.Admission{RunKey: runKey})
	writeList(t, path, friend.Self())

	mallory := outsider(t, p2pnet.Config{})
	var heard atomic.Int64
	topic, err := mallory.Topic("murmuration/1/digits", nil, func(transport.PeerID, []byte) transport.Verdict {
		heard.Add(1)
		return transport.Drop
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { topic.Close() })
	if _, err := mallory.Connect(t.Context(), friend.JoinAddresses()[0]); err != nil { // before anybody is known to take part
		t.Fatal(err)
	}
	core, logged := observer.New(zap.InfoLevel)
	hidden := outsider(t, p2pnet.Config{Relay: p2pnet.Relay{Via: friend.JoinAddresses()}, Log: zap.New(core)})

	host := begin(peer.Admission{Allow: path, RunKey: runKey}, friend.JoinAddresses()...)
	waitMembers(t, host, 2)
	waitMembers(t, friend, 2)
	latest := func(p, of *peer.Peer) (digest uint64) {
		for _, d := range p.Digests() {
			if d.ID == of.Self() {
				digest = d.Sequence
			}
		}
		return digest
	}
	soon(t, "the members have heard three digests of each other", func() bool { return latest(host, friend) >= 3 && latest(friend, host) >= 3 })
	if n := heard.Load(); n != 0 {
		t.Errorf("who does not know the key has heard %d digests", n)
	}
	soon(t, "the relay has refused a place", func() bool { return logged.FilterMessageSnippet("no place at the relay").Len() > 0 })
	if n := logged.FilterMessageSnippet("through a relay").Len(); n > 0 {
		t.Errorf("who does not know the key is reached through the relay: %s", hidden.JoinAddresses())
	}

	stranger := begin(peer.Admission{RunKey: runKey}, host.JoinAddresses()...)
	err = nil // one to whom nobody answers in time trains alone until somebody does
	for end := time.Now().Add(controlPatience); err == nil && time.Now().Before(end); {
		err = step(t, stranger, idle)
	}
	if !errors.Is(err, transport.ErrNotAdmitted) {
		t.Errorf("the stranger's step: %v", err)
	}
	writeList(t, path)
	soon(t, "nobody is a member or connected once all are off the list", func() bool {
		s := host.Stats()
		return s.Members == 1 && s.Connections == 0
	})
}

// TestIdleConnectionsKeepNobodyOutOfAClosedRun: 300 connections on which nobody says anything keep no holder
// of the key out of a run that has one, and the log of its peer names where they come from.
func TestIdleConnectionsKeepNobodyOutOfAClosedRun(t *testing.T) {
	const crowd, tries = 300, 8
	admission := peer.Admission{RunKey: runKey}
	core, logs := observer.New(zap.WarnLevel)
	host := start(t, peer.Config{Run: "digits", Params: newModel(), Network: peer.Network{
		Log: zap.New(core), Listen: []string{"127.0.0.1:0"}, Admission: admission,
	}})
	address := host.JoinAddresses()[0]
	port := strings.Split(address, "/")[4] // of /ip4/127.0.0.1/tcp/PORT/p2p/ID
	for range crowd {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	soon(t, "a line in the log names the block", func() bool {
		return logs.Filter(func(e observer.LoggedEntry) bool { return e.ContextMap()["block"] == "127.0.0.0/24" }).Len() > 0
	})
	for range tries {
		if found, err := admission.Inquire(t.Context(), outsider(t, p2pnet.Config{}), address, "digits", newModel().Layout().Hash()); err != nil {
			t.Errorf("a holder of the key does not get in: %+v, %v", found, err)
		}
	}
	if refused := host.Counters().TransportRefused; refused["gave way"] == 0 {
		t.Errorf("none is counted that gave way: %v", refused)
	}
}
