package sim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
)

// tamperings are what may happen to a frame on its way, each with errors of which
// its victims must show at least one.
var tamperings = []struct {
	name    string
	tamper  func(rng *rand.Rand) sim.Tamper
	expects []error
}{
	{"bit flipped", flip, []error{wire.ErrChecksum}},
	{"truncated", truncate, []error{wire.ErrChecksum}},
	{"oversized", oversize, []error{wire.ErrTooLong}},
	{"repeated", repeat, []error{replica.ErrOrder}},
	{"reordered", reorder, []error{replica.ErrOrder}},
	{"replaced by noise", noise, []error{wire.ErrMagic}},
	{"NaN in it", forge(float32(math.NaN())), []error{replica.ErrAbsurd, quant.ErrNotFinite}},
	{"infinity in it", forge(float32(math.Inf(-1))), []error{replica.ErrAbsurd, quant.ErrNotFinite}},
	{"absurd value in it", forge(-1e38), []error{replica.ErrAbsurd, replica.ErrBound}},
	{"longer code", lengthen, []error{quant.ErrSize}},
}

func flip(rng *rand.Rand) sim.Tamper {
	return func(frame []byte) [][]byte {
		bit := rng.IntN(8 * len(frame))
		frame[bit/8] ^= 1 << (bit % 8)
		return [][]byte{frame}
	}
}

func truncate(rng *rand.Rand) sim.Tamper {
	return func(frame []byte) [][]byte { return [][]byte{frame[:rng.IntN(len(frame))]} }
}

func oversize(rng *rand.Rand) sim.Tamper {
	return func(frame []byte) [][]byte {
		const atLength = 24
		binary.LittleEndian.PutUint32(frame[atLength:], wire.MaxPayload+1+rng.Uint32N(1<<31))
		return [][]byte{frame}
	}
}

func repeat(*rand.Rand) sim.Tamper {
	return func(frame []byte) [][]byte { return [][]byte{frame, frame} }
}

// reorder keeps a frame back until the next one has passed.
func reorder(*rand.Rand) sim.Tamper {
	var kept []byte
	return func(frame []byte) [][]byte {
		if kept == nil {
			kept = frame
			return nil
		}
		first := kept
		kept = nil
		return [][]byte{frame, first}
	}
}

func noise(rng *rand.Rand) sim.Tamper {
	return func(frame []byte) [][]byte {
		for i := range frame {
			frame[i] = byte(rng.Uint32())
		}
		return [][]byte{frame}
	}
}

// forge puts a value into a frame of slices and seals it as its sender would.
func forge(value float32) func(*rand.Rand) sim.Tamper {
	return func(rng *rand.Rand) sim.Tamper {
		return resealed(func(payload []byte) []byte {
			values := payload[wire.InfoSize:]
			binary.LittleEndian.PutUint32(values[4*rng.IntN(len(values)/4):], math.Float32bits(value))
			return payload
		})
	}
}

// lengthen adds a value to a frame of slices.
func lengthen(*rand.Rand) sim.Tamper {
	return resealed(func(payload []byte) []byte { return append(payload, 0, 0, 0, 0) })
}

// resealed changes the payloads of CODE and DIFF frames.
func resealed(change func(payload []byte) []byte) sim.Tamper {
	return func(frame []byte) [][]byte {
		h, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
		if err != nil || h.Type != wire.TypeCode && h.Type != wire.TypeDiff {
			return [][]byte{frame}
		}
		forged := append(wire.Reserve(nil), change(payload)...)
		if wire.Seal(forged, h) != nil {
			return [][]byte{frame}
		}
		return [][]byte{forged}
	}
}

// nowAndThen leaves most frames as they are.
func nowAndThen(rng *rand.Rand, share float64, tamper sim.Tamper) sim.Tamper {
	return func(frame []byte) [][]byte {
		if rng.Float64() >= share {
			return [][]byte{frame}
		}
		return tamper(frame)
	}
}

// typed are all errors that a talk may end with.
var typed = []error{
	wire.ErrMagic, wire.ErrVersion, wire.ErrFlags, wire.ErrType, wire.ErrTooLong, wire.ErrChecksum, wire.ErrTruncated, wire.ErrMessage,
	replica.ErrOrder, replica.ErrWindow, replica.ErrAbsurd, replica.ErrBound, replica.ErrSettled, quant.ErrSize, quant.ErrNotFinite,
	sim.ErrReset, sim.ErrStalled, sim.ErrAborted, sim.ErrRefused, sim.ErrUnreachable, io.ErrUnexpectedEOF,
}

func TestFramesTamperedWithAreRefusedByTypedErrorsAndLoseNothing(t *testing.T) {
	for _, kind := range tamperings {
		t.Run(kind.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(31, 0))
			seen := make(map[error]int)
			training := newStirrer(35, 60)
			training.scale = 5e-4 // so that what is absurd still stands out
			f := newFlock(t, plan{
				seed: 33, peers: 6, values: 60, sliceLen: 8, deadline: within(200 * time.Millisecond),
				config: sim.Config{
					Trainer: training, Link: sim.Link{Delay: 300 * time.Microsecond, Bandwidth: 2e6},
					Terms: replica.Terms{Window: 4}, SettleAfter: 30 * time.Millisecond, Stall: time.Second,
					Hooks: sim.Hooks{
						Opened: func(s *sim.Stream) {
							s.Tamper(s.From(), nowAndThen(rng, 0.1, kind.tamper(rng)))
							s.Tamper(s.To(), nowAndThen(rng, 0.1, kind.tamper(rng)))
						},
						Broke: func(_, _ int, err error) { note(t, seen, err) },
					},
				},
			})
			before, apart := f.sum(), f.spread()
			f.world.Run(8 * time.Second)
			f.comeToRest()
			for i := range before {
				before[i] += training.added[i]
			}
			f.checkSane(before, apart)
			expected := 0
			for _, err := range kind.expects {
				expected += seen[err]
			}
			if expected == 0 {
				t.Errorf("saw %v, never %v", seen, kind.expects)
			}
			t.Logf("saw %v; %+v", seen, f.total())
		})
	}
}

// note counts which of the typed errors an error is.
func note(t *testing.T, seen map[error]int, err error) {
	known := false
	for _, kind := range typed {
		if errors.Is(err, kind) {
			seen[kind]++
			known = true
		}
	}
	if !known {
		t.Errorf("an error without a type: %v", err)
	}
}

// checkSane compares a flock that has not trained, and whose peers began within
// [-1, 1), with its beginning.
func (f *flock) checkSane(before []float64, apart float64) {
	f.t.Helper()
	if moved := drift(before, f.sum()); !(moved <= maxDrift) {
		f.t.Errorf("the sum moved by %g of itself, at most %g", moved, maxDrift)
	}
	if left := f.spread(); !(left < 0.1*apart) {
		f.t.Errorf("the peers are %g apart and were %g: they hardly exchanged", left, apart)
	}
	for i, r := range f.replicas {
		r.Snapshot(f.scratch)
		for _, x := range f.scratch {
			if !(x >= -1.2 && x <= 1.2) {
				f.t.Fatalf("peer %d holds %g, beyond what anybody began with and has learned", i, x)
			}
		}
	}
	if n := f.lost(); n > 0 {
		f.t.Errorf("%d slices were given up", n)
	}
}
