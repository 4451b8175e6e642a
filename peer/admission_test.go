package peer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
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

// place is a transport of a name on a network, to be given to a peer that uses the
// membership for real networks.
func place(t *testing.T, n *memnet.Network, name string) *memnet.Transport {
	t.Helper()
	tr, err := n.Transport(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// guarded starts a peer that is choosy.
func guarded(t *testing.T, at transport.Transport, a peer.Admission, log *zap.Logger, join ...string) *peer.Peer {
	t.Helper()
	return start(t, peer.Config{
		Run:     "digits",
		Params:  newModel(),
		Join:    join,
		Network: peer.Network{Log: log, Transport: at, Admission: a},
	})
}

func waitMembers(t *testing.T, p *peer.Peer, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); p.Stats().Members != n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d members, want %d", p.Stats().Members, n)
		}
	}
}

// A process that knows neither key nor list, and asks for no permission but speaks the
// membership's protocol at once, sees nobody and is seen by nobody.
func TestRunKeyGuardsTheMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		key := bytes.Repeat([]byte{7}, 32)
		h := guarded(t, place(t, n, "host"), peer.Admission{RunKey: key}, nil)
		f := guarded(t, place(t, n, "friend"), peer.Admission{RunKey: key}, nil, "mem:host")
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
		if got := len(m.Members()); got != 1 {
			t.Errorf("it sees %d members, want itself only", got)
		}
		if got := h.Stats().Members; got != 2 {
			t.Errorf("the host sees %d members, want 2", got)
		}
	})
}

// On real connections a stranger is refused at the handshake already, and the list
// and the key hold for whoever is let in.
func TestAdmissionOverLoopback(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, 32)
	path := filepath.Join(t.TempDir(), "allow")
	begin := func(a peer.Admission, join ...string) *peer.Peer {
		return start(t, peer.Config{
			Run: "digits", Params: newModel(), Join: join,
			Network: peer.Network{Listen: []string{"127.0.0.1:0"}, Admission: a},
		})
	}
	friend := begin(peer.Admission{RunKey: key})
	writeList(t, path, friend.Self())
	host := begin(peer.Admission{Allow: path, RunKey: key}, friend.JoinAddresses()...)
	waitMembers(t, host, 2)
	waitMembers(t, friend, 2)
	stranger := begin(peer.Admission{RunKey: key}, host.JoinAddresses()...)
	var err error // one to whom nobody answers in time trains alone until somebody does
	for end := time.Now().Add(controlPatience); err == nil && time.Now().Before(end); {
		err = step(t, stranger, idle)
	}
	if !errors.Is(err, transport.ErrNotAdmitted) {
		t.Errorf("the stranger's step: %v", err)
	}
	writeList(t, path)
	for end := time.Now().Add(controlPatience); host.Stats().Members != 1 || host.Stats().Connections != 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d members and %d connections once everybody is off the list", host.Stats().Members, host.Stats().Connections)
		}
	}
}
