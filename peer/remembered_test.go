package peer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
)

// A peer that starts anew finds a partner of its earlier life, although those that it
// is told to join would show it another flock.
func TestPartnersAreLookedFor(t *testing.T) {
	known := filepath.Join(t.TempDir(), "node.key.known")
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		begin := func(name, file string, join ...string) *peer.Peer {
			network := inMemory(t, n, name, "digits")
			network.KnownPeers = file
			return start(t, peer.Config{Run: "digits", Params: newModel(), Join: join, Network: network})
		}
		host := begin("host", "")
		guest := begin("guest", known, "mem:host")
		waitMembers(t, guest, 2)
		for range 200 {
			for _, p := range []*peer.Peer{host, guest} {
				if err := step(t, p, idle); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		if guest.Stats().Exchanges.Completed() == 0 {
			t.Fatal("no exchange")
		}
		if err := guest.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(known + ".partners")
		if err != nil || !strings.Contains(string(text), string(host.Self())+" mem:host") {
			t.Fatalf("remembered %q, %v", text, err)
		}
		begin("impostor", "")
		again := begin("guest-again", known, "mem:impostor")
		waitMembers(t, again, 3)
	})
}

// TestPartnersThatACallerKept: a founder that starts anew, elsewhere and told to join nobody, finds its
// flock by what Members said of it.
func TestPartnersThatACallerKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		founder := start(t, peer.Config{Run: "digits", Params: newModel(), Network: inMemory(t, n, "founder", "digits")})
		start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:founder"}, Network: inMemory(t, n, "guest", "digits")})
		waitMembers(t, founder, 2)
		var kept []peer.Partner
		for _, m := range founder.Members() {
			if len(m.Addresses) > 0 {
				kept = append(kept, peer.Partner{ID: m.ID, Addresses: m.Addresses})
			}
		}
		if len(kept) != 1 {
			t.Fatalf("kept %v", kept)
		}
		n.Crash(founder.Self())
		network := inMemory(t, n, "elsewhere", "digits")
		network.Partners = kept
		again := start(t, peer.Config{Run: "digits", Params: newModel(), Network: network})
		waitMembers(t, again, 2)
	})
}
