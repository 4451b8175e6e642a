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
	"github.com/seed-97356399/murmuration/peer/transport"
	"github.com/seed-97356399/murmuration/tensor"
)

// giver is a transport that alters, or merely sees, the frames which its peer sends
// to joiners.
type giver struct {
	transport.Transport
	alter func(typ wire.Type, frame []byte) []byte
}

func (g *giver) Handle(protocol transport.Protocol, run string, handler transport.Handler) (func(), error) {
	if protocol != transport.ProtocolState {
		return g.Transport.Handle(protocol, run, handler)
	}
	return g.Transport.Handle(protocol, run, func(s transport.Stream) { handler(&givenStream{s, g}) })
}

type givenStream struct {
	transport.Stream
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
	ids    atomic.Pointer[[]transport.PeerID]               // of those that Start has started
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

// crash kills a peer. It may be called while a joiner is added.
func (f *flockOf) crash(i int) { f.Network.Crash((*f.ids.Load())[i]) }

// arriveLate adds a joiner and returns what it starts with, and its stats.
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
				var reported []transport.PeerID
				var mu sync.Mutex
				late := f.addWith(t, func(c *peer.Config) {
					c.Training.Hooks.Quarantined = func(id transport.PeerID, _ time.Duration, offence error) {
						mu.Lock()
						defer mu.Unlock()
						fault, ok := errors.AsType[*copying.ServerError](offence)
						if reported = append(reported, id); !ok || fault.Fault != copying.WrongSlice {
							t.Errorf("reported for %v", offence)
						}
					}
				})
				checkTrained(t, firstSnapshot(t, late), 3)
				s := late.Stats().State
				if s.Faulty != 1 || s.Servers != 2 || s.Retransmitted < 4 {
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

// addWith adds a joiner with a configuration of its own.
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
