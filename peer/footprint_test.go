package peer_test

import (
	"flag"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer"
)

// crowd is the largest flock of TestFootprintGrowsOnlyByConnections: 64 take a while
// on a small machine.
var crowd = flag.Int("crowd", 16, "largest number of peers whose footprint is measured, 8 to 64")

const (
	// memberBytes is what another member takes by streams, both ends together: the
	// connection, of which TestConnectionFootprint of package p2pnet has the bound, a
	// stream with a sender and a reader each way, and what each end knows of the other.
	// It is 111 to 126 KiB: what would go beyond is one more buffer for each, not noise.
	memberBytes = 512 << 10
	// memberGoroutines: libp2p takes four for a connection at each end; the
	// membership's streams take one to send and one to receive at each.
	memberGoroutines = 2*4 + 2*2
	// ownGoroutines are those of a peer that has joined nobody.
	ownGoroutines = 40
)

// footprint is what this process takes once it is quiet.
type footprint struct{ goroutines, bytes int }

func takeFootprint() footprint {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), int(m.HeapAlloc + m.StackInuse)}
}

func (f footprint) minus(g footprint) footprint {
	return footprint{f.goroutines - g.goroutines, f.bytes - g.bytes}
}

// crowded runs so many peers over loopback and hands what they take beyond what was
// there before, and how many connections join them, to fits until it agrees: probes
// still connect those that gossip has not, and handshakes leave garbage.
func crowded(t *testing.T, peers int, joined bool, fits func(took footprint, connections int) bool) {
	t.Helper()
	before := takeFootprint()
	var all []*peer.Peer
	var join []string
	for i := range peers {
		p, err := peer.Start(t.Context(), peer.Config{
			Run: "digits", Params: newModel(), Join: join, Network: peer.Network{Listen: []string{"127.0.0.1:0"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, p); joined && i == 0 {
			join = p.JoinAddresses()[:1]
		}
	}
	defer func() {
		var closing sync.WaitGroup
		for _, p := range all {
			closing.Go(func() { p.Close() })
		}
		closing.Wait()
	}()
	if joined {
		for _, p := range all {
			if err := p.WaitMembers(t.Context(), peers); err != nil {
				t.Fatal(err)
			}
		}
	}
	const patience = time.Minute // sockets are real, and so is time
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		connections := 0
		for _, p := range all {
			connections += p.Stats().Connections
		}
		took := takeFootprint().minus(before)
		if fits(took, connections/2) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d peers still take %d goroutines and %d KiB after %s, with %d connections", peers, took.goroutines, took.bytes>>10, patience, connections/2)
			return
		}
	}
}

// TestFootprintGrowsOnlyByConnections: what a peer takes beside its connections is the
// same in a flock of any size, and a connection takes the same too.
func TestFootprintGrowsOnlyByConnections(t *testing.T) {
	if underRace {
		t.Skip("the race detector has memory of its own, and other tests have as many peers over loopback exchange")
	}
	const alone = 8
	var own footprint
	crowded(t, alone, false, func(took footprint, connections int) bool {
		own = footprint{took.goroutines / alone, took.bytes / alone}
		return connections == 0 && own.goroutines <= ownGoroutines
	})
	t.Logf("a peer without connections: %d goroutines, %d KiB", own.goroutines, own.bytes>>10)
	for peers := 8; peers <= *crowd; peers *= 2 {
		crowded(t, peers, true, func(took footprint, connections int) bool {
			// One that is dialled from both ends at once is two for a moment, and on a busy machine
			// one was for a minute.
			if few := peers / 8; connections == 0 || connections > peers*(peers-1)/2+few {
				return false
			}
			goroutines := float64(took.goroutines-peers*own.goroutines) / float64(connections)
			bytes := (took.bytes - peers*own.bytes) / connections
			if goroutines > memberGoroutines+1 || bytes > memberBytes {
				return false
			}
			t.Logf("%d peers, %d connections: %d goroutines and %d KiB a peer; %.1f goroutines and %d KiB a connection",
				peers, connections, took.goroutines/peers, took.bytes/peers>>10, goroutines, bytes>>10)
			return true
		})
	}
}
