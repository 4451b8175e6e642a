package peer_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
)

// TestADonorsWordOnItsAgeIsHeldToTheFlocks: joiners that have copied the model of a member
// that says it is older than anything would tell it on in good faith, until the flock
// believes whatever steps that member claims.
func TestADonorsWordOnItsAgeIsHeldToTheFlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *flockOf
		f = startStates(t, 4, memnet.Link{Delay: time.Millisecond}, func(prepared *flockOf) {
			var digest [wire.HashSize]byte
			prepared.alter[0] = func(typ wire.Type, frame []byte) []byte {
				switch typ {
				case wire.TypeManifest:
					frame = remanifest(frame, f.givers[0].Sign, func(m *wire.Manifest) { m.Steps = 1 << 60 })
					digest = sha256.Sum256(frame[wire.HeaderSize:])
				case wire.TypeStateHashes:
					header, payload, err := wire.NewReader(bytes.NewReader(frame), wire.MaxPayload).Next()
					var m wire.StateHashes
					if err != nil || m.Decode(payload) != nil {
						t.Error(err)
					}
					m.Signature, _ = f.givers[0].Sign(m.Statement(nil, digest, header.Slice))
					frame = resealed(frame, m.Append(nil))
				}
				return frame
			}
			for i := 1; i < 4; i++ { // the others are too slow to give anything
				prepared.alter[i] = func(typ wire.Type, frame []byte) []byte {
					if typ == wire.TypeManifest {
						time.Sleep(4 * time.Second)
					}
					return frame
				}
			}
		})
		for i := range 16 {
			c := peer.Config{
				Run:      peertest.Run,
				Params:   newModel(),
				Join:     f.Peers[0].JoinAddresses()[:1],
				Network:  inMemory(t, f.Network, fmt.Sprint("late-", i), peertest.Run),
				Training: peer.Training{Exchange: peer.Exchange{SliceLen: 2050 / stateSlices}},
			}
			late := start(t, c)
			checkTrained(t, firstSnapshot(t, late), 4)
			s := late.Stats()
			time.Sleep(3 * time.Second) // its record tells
			if s.Age > 2*s.FlockSteps {
				t.Errorf("a newcomer says that %d steps lie behind its model, all have taken %d", s.Age, s.FlockSteps)
			}
		}
	})
}
