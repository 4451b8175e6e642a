package peer_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestANumberInAWelcomeEndsNobodysPart: what a member says of a newcomer's lives, in which
// nothing is signed by the newcomer, moves nothing.
func TestANumberInAWelcomeEndsNobodysPart(t *testing.T) {
	t.Parallel()
	for _, number := range []uint64{math.MaxUint64, math.MaxUint64 - 1} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New(memnet.Config{})
				liar := inMemory(t, network, "liar", "digits")
				if err := liar.Membership.Announce(seam.Record{Peer: liar.Transport.Self(), Run: "digits", Incarnation: 1}); err != nil {
					t.Fatal(err)
				}
				stop, err := liar.Transport.Handle(seam.ProtocolHello, "digits", func(stream seam.Stream) {
					defer stream.Close()
					wire.NewReader(stream, 0).Next()
					frame, err := wire.Pack(nil, 0, wire.Welcome{Incarnation: 1, KnownIncarnation: number})
					if err != nil {
						t.Error(err)
					}
					stream.Write(frame)
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stop)
				guest := start(t, peer.Config{Run: "digits", Params: newModel(), Join: []string{"mem:liar"}, Network: inMemory(t, network, "guest", "digits")})
				waitMembers(t, guest, 2)
				for range 10 {
					if err := step(t, guest, idle); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				var saved peer.Saved
				guest.Save(&saved)
				if s := guest.Stats(); s.Incarnation != 1 || saved.Checkpoint.Incarnation != 1 {
					t.Errorf("incarnation %d, in its checkpoint %d; want 1 in both", s.Incarnation, saved.Checkpoint.Incarnation)
				}
				for _, r := range liar.Membership.Members() {
					if r.Peer == guest.Self() && r.Steps < 8 {
						t.Errorf("the others have heard of %d of its 10 steps", r.Steps)
					}
				}
			})
		})
	}
}

// TestANewLifeExceedsItsRecords: a peer that comes back under its identity is told of its
// earlier lives by the records that it has signed, with memberlist too.
func TestANewLifeExceedsItsRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := peertest.Start(t, peertest.Config{Peers: 4, Params: newModel, Swim: true, Link: memnet.Link{Delay: time.Millisecond}})
		for life := uint64(2); life <= 4; life++ {
			f.TrainSteps(t.Context(), 20, atPace(20*time.Millisecond, towards))
			f.Crash(3)
			back := f.Return(3)
			f.WaitJoined(4)
			firstSnapshot(t, back)
			time.Sleep(5 * time.Second)
			if got := back.Stats().Incarnation; got != life {
				t.Fatalf("incarnation %d, want %d", got, life)
			}
		}
	})
}

// TestACheckpointWithAnAbsurdNumberIsRefused: it would wrap, or use the identity up.
func TestACheckpointWithAnAbsurdNumberIsRefused(t *testing.T) {
	for _, number := range []uint64{math.MaxUint64, seam.MaxIncarnation} {
		config := peer.Config{Run: "digits", Params: newModel()}
		config.Network.State.Checkpoint = peer.Checkpoint{Own: 5, Steps: 5, FlockSteps: 5, Incarnation: number}
		if _, err := peer.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "begin without the checkpoint") {
			t.Errorf("incarnation %d: error %v", number, err)
		}
	}
}
