package peer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestSlowDonorsTogetherKeepNobodyWaiting: though a newcomer copies from as many as it asks
// at once, and all of them take their time.
func TestSlowDonorsTogetherKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slow = 3
		f := startStates(t, slow+1, memnet.Link{Delay: time.Millisecond}, func(f *flockOf) {
			for i := range slow {
				f.alter[i] = func(typ wire.Type, frame []byte) []byte {
					if typ == wire.TypeStateSlice {
						time.Sleep(4 * time.Second)
					}
					return frame
				}
			}
		})
		for i := range 12 {
			c := peer.Config{
				Run:      peertest.Run,
				Params:   newModel(),
				Join:     f.Peers[0].JoinAddresses()[:1],
				Network:  inMemory(t, f.Network, fmt.Sprint("late-", i), peertest.Run),
				Training: peer.Training{Exchange: peer.Exchange{SliceLen: 2050 / stateSlices}},
			}
			late := start(t, c)
			began := time.Now()
			checkTrained(t, firstSnapshot(t, late), slow+1)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("newcomer %d waits for its model for %s: %+v", i, took, late.Stats().State)
			}
			late.Close()
		}
	})
}
