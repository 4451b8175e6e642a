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

// Who came just before a peer leaves is written down too.
func TestPartnersAreWrittenDownAtTheEnd(t *testing.T) {
	known := filepath.Join(t.TempDir(), "node.key.known")
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		begin := func(name, file string, join ...string) *peer.Peer {
			network := inMemory(t, n, name, "digits")
			network.KnownPeers, network.Reach.Unreachable = file, file != "" // active
			config := peer.Config{Run: "digits", Params: newModel(), Join: join, Network: network}
			config.Exchange.Pace.Every = 1
			return start(t, config)
		}
		all := []*peer.Peer{begin("guest", known)}
		for i, name := range []string{"first", "second"} {
			all = append(all, begin(name, "", "mem:guest"))
			for _, p := range all {
				waitMembers(t, p, len(all))
			}
			for range 100 {
				for _, p := range all {
					if err := step(t, p, idle); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			if all[i+1].Stats().Exchanges.Completed() == 0 {
				t.Fatalf("no exchange with the %s", name)
			}
		}
		if err := all[0].Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(known + ".partners")
		if err != nil || strings.Count(string(text), "\n") != 2 {
			t.Errorf("remembered %q, %v, of two partners", text, err)
		}
	})
}
