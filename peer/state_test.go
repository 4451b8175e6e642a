package peer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/internal/copying"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer"
	"github.com/seed-97356399/murmuration/peer/memnet"
	"github.com/seed-97356399/murmuration/peer/peertest"
	"github.com/seed-97356399/murmuration/peer/seam"
	"github.com/seed-97356399/murmuration/tensor"
)

// giver is a transport that alters, or merely sees, the frames which its peer sends
// to newcomers.
type giver struct {
	seam.Transport
	alter func(typ wire.Type, frame []byte) []byte
}

func (g *giver) Handle(protocol seam.Protocol, run string, handler seam.Handler) (func(), error) {
	if protocol != seam.ProtocolState {
		return g.Transport.Handle(protocol, run, handler)
	}
	return g.Transport.Handle(protocol, run, func(s seam.Stream) { handler(&givenStream{s, g}) })
}

type givenStream struct {
	seam.Stream
	by *giver
}

func (s *givenStream) Write(frame []byte) (int, error) {
	if s.by.alter == nil {
		return s.Stream.Write(frame)
	}
	if _, err := s.Stream.Write(s.by.alter(wire.Type(frame[3]), slices.Clone(frame))); err != nil {
		return 0, err
	}
	return len(frame), nil
}

// resealed is a frame with another payload.
func resealed(frame, payload []byte) []byte {
	header, _, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
	if err != nil {
		panic(err) // the peer has made it
	}
	altered := append(wire.Reserve(nil), payload...)
	if err := wire.Seal(altered, header); err != nil {
		panic(err)
	}
	return altered
}

// remanifest is a frame of a manifest with an edit; sign signs it anew, unless nil.
func remanifest(frame []byte, sign func([]byte) ([]byte, error), edit func(*wire.Manifest)) []byte {
	var m wire.Manifest
	if err := m.Decode(frame[wire.HeaderSize:]); err != nil {
		panic(err)
	}
	edit(&m)
	if sign != nil {
		m.Signature, _ = sign(m.Statement(nil))
	}
	return resealed(frame, m.Append(nil))
}

// flockOf is a flock in memory whose models have many slices, with a giver at each peer.
type flockOf struct {
	*peertest.Flock
	givers []*giver
	logged *observer.ObservedLogs
	alter  map[int]func(typ wire.Type, frame []byte) []byte // by peer
	ids    atomic.Pointer[[]seam.PeerID]                    // of those that Start has started
}

// stateSlices is the number of slices of a model of a flockOf.
const stateSlices = 41

// startStates starts a flock that has trained, with faults to come.
func startStates(t *testing.T, peers int, link memnet.Link, prepare func(*flockOf)) *flockOf {
	t.Helper()
	core, logged := observer.New(zap.InfoLevel)
	f := &flockOf{logged: logged, alter: map[int]func(wire.Type, []byte) []byte{}}
	if prepare != nil {
		prepare(f)
	}
	f.Flock = peertest.Start(t, peertest.Config{Peers: peers, Params: newModel, Link: link, Configure: func(i int, c *peer.Config) {
		shortRun(i, c)
		c.Training.Exchange.SliceLen = 2050 / stateSlices
		c.Training.Work = peer.Work{}
		c.Network.Log = zap.New(core)
		g := &giver{Transport: c.Network.Transport, alter: f.alter[i]}
		f.givers = append(f.givers, g)
		c.Network.Transport = g
	}})
	f.TrainSteps(t.Context(), 100, atPace(10*time.Millisecond, towards))
	time.Sleep(time.Second) // everybody's record tells
	ids := f.IDs()
	f.ids.Store(&ids)
	return f
}

// crash kills a peer. It may be called while a newcomer is added.
func (f *flockOf) crash(i int) { f.Network.Crash((*f.ids.Load())[i]) }

// arriveLate adds a newcomer and returns what it starts with, and its stats.
func (f *flockOf) arriveLate(t *testing.T) (first []float32, late *peer.Peer) {
	t.Helper()
	late = f.Add()
	return firstSnapshot(t, late), late
}

func firstSnapshot(t *testing.T, p *peer.Peer) (first []float32) {
	t.Helper()
	err := p.Step(t.Context(), func(x, _ tensor.Vector) (peer.Result, error) {
		first = append(first, x...)
		return peer.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// checkTrained tells whether every value is near those that the flock has learned.
func checkTrained(t *testing.T, values []float32, peers int) {
	t.Helper()
	for i, v := range values {
		if math.Abs(float64(v)-common-float64(peers-1)/2) > 1 {
			t.Fatalf("value %d is %g, the flock's are about %g", i, v, common+float64(peers-1)/2)
		}
	}
}

func TestANewcomerMixesTheSlicesOfSeveralDonors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startStates(t, 4, memnet.Link{Delay: 10 * time.Millisecond, Bandwidth: 1 << 20}, nil)
		first, late := f.arriveLate(t)
		checkTrained(t, first, 4)
		s := late.Stats().State
		if s.Donors != copying.Donors || s.Slices != stateSlices || s.Liars != 0 || s.Alone || s.Kept {
			t.Errorf("%+v", s)
		}
		if age := late.Stats().Age; age != 101 {
			t.Errorf("%d steps lie behind its model, want 101", age)
		}
	})
}

// TestWhatADonorSigns: a donor whose manifest is forged, stale, or of another run,
// layout or donor is found out before any slice, and not asked again.
func TestWhatADonorSigns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit   func(*wire.Manifest)
		signed bool
		want   copying.Fault
		report bool
	}{
		"a forged signature":  {func(m *wire.Manifest) { m.Signature[0]++ }, false, copying.Forged, true},
		"altered steps":       {func(m *wire.Manifest) { m.FlockSteps = 1 << 60 }, false, copying.Forged, true},
		"another donor":       {func(m *wire.Manifest) { m.Donor = "somebody" }, true, copying.Forged, true},
		"another run":         {func(m *wire.Manifest) { m.Run = "letters" }, true, copying.WrongRun, false},
		"another layout":      {func(m *wire.Manifest) { m.Layout[0]++ }, true, copying.WrongLayout, false},
		"other slices":        {func(m *wire.Manifest) { m.SliceLen++ }, true, copying.WrongLayout, false},
		"more values":         {func(m *wire.Manifest) { m.Values++ }, true, copying.WrongLayout, false},
		"an earlier life":     {func(m *wire.Manifest) { m.Incarnation = 0 }, true, copying.Stale, false},
		"a state long passed": {func(m *wire.Manifest) { m.Steps = 80 }, true, copying.Stale, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked, given atomic.Int64
				f := startStates(t, 3, memnet.Link{Delay: 5 * time.Millisecond}, func(f *flockOf) {
					f.alter[1] = func(typ wire.Type, frame []byte) []byte {
						switch typ {
						case wire.TypeManifest:
							asked.Add(1)
							var sign func([]byte) ([]byte, error)
							if c.signed {
								sign = f.givers[1].Sign
							}
							return remanifest(frame, sign, c.edit)
						case wire.TypeStateSlice:
							given.Add(1)
						}
						return frame
					}
				})
				first, late := f.arriveLate(t)
				checkTrained(t, first, 3)
				if asked.Load() != 1 || given.Load() != 0 {
					t.Errorf("asked %d times, and gave %d slices", asked.Load(), given.Load())
				}
				found := slices.ContainsFunc(f.logged.All(), func(e observer.LoggedEntry) bool {
					return slices.ContainsFunc(e.Context, func(field zap.Field) bool {
						err, _ := field.Interface.(error)
						fault, ok := errors.AsType[*copying.DonorError](err)
						return ok && fault.Fault == c.want && fault.Donor == f.Peers[1].Self()
					})
				})
				if s := late.Stats(); !found || (s.Quarantined == 1) != c.report || s.State.Donors > 2 {
					t.Errorf("found out: %v, %d quarantined, %d donors", found, s.Quarantined, s.State.Donors)
				}
			})
		})
	}
}

// TestALyingDonorsSlicesAreAskedElsewhere: those too that it has given before it was
// caught.
func TestALyingDonorsSlicesAreAskedElsewhere(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(payload []byte){
		"another value": func(payload []byte) { payload[8] ^= 1 },
		"not a number":  func(payload []byte) { binary.LittleEndian.PutUint32(payload, math.Float32bits(float32(math.NaN()))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var given atomic.Int64
				f := startStates(t, 3, memnet.Link{Delay: time.Millisecond}, func(f *flockOf) {
					f.alter[1] = func(typ wire.Type, frame []byte) []byte {
						if typ == wire.TypeStateSlice && given.Add(1) == 4 {
							payload := slices.Clone(frame[wire.HeaderSize:])
							corrupt(payload)
							return resealed(frame, payload)
						}
						return frame
					}
				})
				var reported []seam.PeerID
				var mu sync.Mutex
				late := f.addWith(t, func(c *peer.Config) {
					c.Training.Hooks.Quarantined = func(id seam.PeerID, _ time.Duration, offence error) {
						mu.Lock()
						defer mu.Unlock()
						fault, ok := errors.AsType[*copying.DonorError](offence)
						if reported = append(reported, id); !ok || fault.Fault != copying.WrongSlice {
							t.Errorf("reported for %v", offence)
						}
					}
				})
				checkTrained(t, firstSnapshot(t, late), 3)
				s := late.Stats().State
				if s.Liars != 1 || s.Donors != 2 || s.Again < 4 {
					t.Errorf("%+v", s)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(reported) != 1 || reported[0] != f.Peers[1].Self() {
					t.Errorf("reported %v", reported)
				}
			})
		})
	}
}

// TestHashesAreSignedWithTheirManifest: those of another state, or of other slices,
// do not pass.
func TestHashesAreSignedWithTheirManifest(t *testing.T) {
	for name, alter := range map[string]func(m *wire.StateHashes, sign func([]byte) ([]byte, error)){
		"altered": func(m *wire.StateHashes, _ func([]byte) ([]byte, error)) { m.Hashes[0]++ },
		"of another manifest": func(m *wire.StateHashes, sign func([]byte) ([]byte, error)) {
			m.Signature, _ = sign(m.Statement(nil, [32]byte{1}, 0))
		},
		"one too few": func(m *wire.StateHashes, _ func([]byte) ([]byte, error)) { m.Hashes = m.Hashes[wire.HashSize:] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startStates(t, 3, memnet.Link{Delay: 5 * time.Millisecond}, func(f *flockOf) {
					f.alter[1] = func(typ wire.Type, frame []byte) []byte {
						var m wire.StateHashes
						if typ != wire.TypeStateHashes || m.Decode(slices.Clone(frame[wire.HeaderSize:])) != nil {
							return frame
						}
						alter(&m, f.givers[1].Sign)
						return resealed(frame, m.Append(nil))
					}
				})
				first, late := f.arriveLate(t)
				checkTrained(t, first, 3)
				if s := late.Stats(); s.State.Liars != 1 || s.State.Donors != 2 || s.Quarantined != 1 {
					t.Errorf("%d quarantined, %+v", s.Quarantined, s.State)
				}
			})
		})
	}
}

// addWith adds a newcomer with a configuration of its own.
func (f *flockOf) addWith(t *testing.T, configure func(*peer.Config)) *peer.Peer {
	t.Helper()
	config := peer.Config{
		Run:      peertest.Run,
		Params:   newModel(),
		Join:     f.Peers[0].JoinAddresses()[:1],
		Network:  inMemory(t, f.Network, "late", peertest.Run),
		Training: peer.Training{Exchange: peer.Exchange{SliceLen: 2050 / stateSlices}},
	}
	configure(&config)
	return start(t, config)
}

// TestADonorKilledMidwayCostsOnlyItsSlices: what was verified is kept, whoever gave
// it, and the rest is asked of others.
func TestADonorKilledMidwayCostsOnlyItsSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given [3]atomic.Int64
		var f *flockOf
		f = startStates(t, 3, memnet.Link{Delay: 5 * time.Millisecond, Bandwidth: 64 << 10}, func(prepared *flockOf) {
			for i := range given {
				prepared.alter[i] = func(typ wire.Type, frame []byte) []byte {
					if typ == wire.TypeStateSlice && given[i].Add(1) == 10 && i == 1 {
						f.crash(1)
					}
					return frame
				}
			}
		})
		first, late := f.arriveLate(t)
		checkTrained(t, first, 3)
		s := late.Stats().State
		window := int64(stateSlices / (2 * copying.Donors))
		if all := given[0].Load() + given[1].Load() + given[2].Load(); s.Donors != 3 || all > stateSlices+window || int64(s.Again) > window {
			t.Errorf("%d slices were sent for %d, in a window of %d: %+v", all, stateSlices, window, s)
		}
	})
}

// TestTheOnlyDonorsStreamBreaks: the newcomer comes back for what is missing, and
// mixes slices of two frozen copies of one donor.
func TestTheOnlyDonorsStreamBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given atomic.Int64
		var newcomer atomic.Pointer[seam.PeerID]
		var f *flockOf
		f = startStates(t, 1, memnet.Link{Delay: 5 * time.Millisecond}, func(prepared *flockOf) {
			prepared.alter[0] = func(typ wire.Type, frame []byte) []byte {
				if id := newcomer.Load(); typ == wire.TypeStateSlice && given.Add(1) == 20 && id != nil {
					f.Network.CutAfter((*f.ids.Load())[0], *id, 0)
				}
				return frame
			}
		})
		late := f.addWith(t, func(*peer.Config) {})
		id := late.Self()
		newcomer.Store(&id)
		checkTrained(t, firstSnapshot(t, late), 1)
		s := late.Stats().State
		if window := stateSlices / (2 * copying.Donors); s.Donors != 1 || s.Again == 0 || int(s.Again) > window+1 || given.Load() > int64(stateSlices+window+1) {
			t.Errorf("sent %d: %+v", given.Load(), s)
		}
	})
}
