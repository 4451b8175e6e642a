package peer_test

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/stats"
	"github.com/seed-97356399/murmuration/tensor"
)

// crashAndReturn kills peer 1 of a flock, lets the others train on, and brings it
// back under its identity with what it had then.
func crashAndReturn(t *testing.T, f *flockOf, steps int) (saved tensor.Vector, back *peer.Peer) {
	t.Helper()
	saved = f.Models()[1]
	before := f.Peers[1].Stats()
	f.Network.Crash(f.Peers[1].Self())
	f.Peers[1].Close()
	gone := f.Peers[1]
	f.Peers = slices.Delete(f.Peers, 1, 2)
	f.TrainSteps(t.Context(), steps, atPace(10*time.Millisecond, towards))
	time.Sleep(time.Second)
	config := peer.Config{
		Run:      peertest.Run,
		Join:     f.Peers[0].JoinAddresses()[:1],
		Network:  inMemory(t, f.Network, "peer-1", peertest.Run),
		Training: peer.Training{Exchange: peer.Exchange{SliceLen: 2050 / stateSlices}},
	}
	config.Params = newModel()
	copy(config.Params.Vector(), saved)
	config.Training.Checkpoint = peer.CheckpointOf(stats.Peer{Age: before.Age, FlockSteps: before.FlockSteps})
	back = start(t, config)
	if back.Self() != gone.Self() {
		t.Fatal("another identity")
	}
	return saved, back
}

// TestWarmRejoin: a peer that restarts with a checkpoint which is near trains on from
// it, as a new incarnation, and copies nothing.
func TestWarmRejoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 3, memnet.Link{Delay: time.Millisecond}, nil)
		saved, back := crashAndReturn(t, f, 10) // 320 steps of all, 300 at the checkpoint
		if first := firstSnapshot(t, back); !slices.Equal(first, saved) {
			t.Error("it does not begin with the values of its checkpoint")
		}
		s := back.Stats()
		if !s.State.Kept || s.State.Servers != 0 || s.Incarnation != 2 || s.Age != 101 || s.FlockSteps != 321 {
			t.Errorf("%+v", s)
		}
		for i, p := range f.Peers {
			if given := p.Stats().State.Sent; given != 0 {
				t.Errorf("peer %d gave %d slices", i, given)
			}
		}
		f.Peers = append(f.Peers, back)
		f.TrainSteps(t.Context(), 100, atPace(10*time.Millisecond, towards))
		if back.Stats().Exchanges.Completed() == 0 {
			t.Error("it does not exchange")
		}
	})
}

// TestColdRejoin: what lies too far behind is not trained on from.
func TestColdRejoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 3, memnet.Link{Delay: time.Millisecond}, nil)
		saved, back := crashAndReturn(t, f, 30) // 360 steps of all
		if first := firstSnapshot(t, back); slices.Equal(first, saved) {
			t.Error("it begins with the values of its checkpoint")
		}
		s := back.Stats()
		if s.State.Kept || s.State.Servers != 2 || s.Incarnation != 2 || s.Age != 131 || s.FlockSteps != 361 {
			t.Errorf("%+v", s)
		}
	})
}

// TestANewLifeExceedsAllThatAnyMemberKnows: the member that lets a peer in may be new
// itself, and know less than others.
func TestANewLifeExceedsAllThatAnyMemberKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 3, memnet.Link{Delay: time.Millisecond}, nil)
		for life := uint64(2); life <= 4; life++ {
			_, back := crashAndReturn(t, f, 3)
			firstSnapshot(t, back)
			if got := back.Stats().Incarnation; got != life {
				t.Fatalf("incarnation %d, want %d", got, life)
			}
			f.Peers = slices.Insert(f.Peers, 1, back)
		}
	})
}

// TestOneDonorsLieAboutTheFlockMovesNothing: a joiner takes the median of several
// words on what the flock has done.
func TestOneDonorsLieAboutTheFlockMovesNothing(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]uint64{"much": 1 << 60, "nothing": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startStates(t, 3, memnet.Link{Delay: time.Millisecond}, func(f *flockOf) {
					var digest [32]byte
					f.alter[1] = func(typ wire.Type, frame []byte) []byte {
						switch typ {
						case wire.TypeManifest:
							frame = remanifest(frame, f.givers[1].Sign, func(m *wire.Manifest) { m.FlockSteps = lie })
							digest = sha256.Sum256(frame[wire.HeaderSize:])
						case wire.TypeStateHashes: // signed together with the lie
							var m wire.StateHashes
							if err := m.Decode(slices.Clone(frame[wire.HeaderSize:])); err != nil {
								t.Error(err)
							}
							m.Signature, _ = f.givers[1].Sign(m.Statement(nil, digest, binary.LittleEndian.Uint32(frame[16:])))
							return resealed(frame, m.Append(nil))
						}
						return frame
					}
				})
				first, late := f.arriveLate(t)
				checkTrained(t, first, 3)
				if s := late.Stats().State; s.Servers != 3 || s.Faulty != 0 {
					t.Errorf("the lie was not heard: %+v", s)
				}
				if got := late.Stats().FlockSteps; math.Abs(float64(got)-301) > 3 {
					t.Errorf("the flock has taken %d steps, want 301", got)
				}
			})
		})
	}
}
