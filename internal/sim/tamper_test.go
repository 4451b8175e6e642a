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

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/sim"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// tampering is what may happen to frames on their way, with errors of which the
// victims must show at least one.
type tampering struct {
	name    string
	tamper  func(rng *rand.Rand) sim.Tamper
	expects []error
	// oneWay spares the other direction of a stream. Whoever changes the order of CODE
	// frames and puts that of the DIFF frames right again has both sides count other
	// slices as acknowledged, and if he then breaks the stream off the sum moves,
	// whatever the codec. That takes both directions, which the transport's encryption
	// gives to nobody.
	oneWay bool
	// seldom is done to fewer frames: streams stand still until somebody gives up.
	seldom bool
}

var tamperings = []tampering{
	{name: "bit flipped", tamper: flip, expects: []error{wire.ErrChecksum}},
	{name: "truncated", tamper: truncate, expects: []error{wire.ErrChecksum}, seldom: true},
	{name: "oversized", tamper: oversize, expects: []error{wire.ErrTooLong}},
	{name: "repeated", tamper: repeat, expects: []error{replica.ErrOrder}},
	{name: "reordered", tamper: reorder, expects: []error{replica.ErrOrder}, oneWay: true},
	{name: "replaced by noise", tamper: noise, expects: []error{wire.ErrMagic}},
	{name: "NaN in it", tamper: forge(float32(math.NaN())), expects: append([]error{replica.ErrImplausible, coding.ErrNotFinite}, unfit...)},
	{name: "infinity in it", tamper: forge(float32(math.Inf(-1))), expects: append([]error{replica.ErrImplausible, coding.ErrNotFinite}, unfit...)},
	{name: "absurd value in it", tamper: forge(-1e38), expects: append([]error{replica.ErrImplausible, replica.ErrBound, coding.ErrNotFinite}, unfit...)},
	{name: "longer code", tamper: lengthen, expects: []error{coding.ErrSize}},
}

// unfit are errors of a value where a coder of blocks has a scale, a spacing or a set.
var unfit = []error{coding.ErrScale, coding.ErrSpacing, coding.ErrPadding, coding.ErrHalf, coding.ErrSize, replica.ErrBlocks, replica.ErrBound}

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

// forge puts a value into a frame of slices and seals it as its sender would: into one
// of the values or, if a coder of blocks has none, where the scale of a block is.
func forge(value float32) func(*rand.Rand) sim.Tamper {
	return func(rng *rand.Rand) sim.Tamper {
		return resealed(slicesOnly, func(payload []byte) []byte {
			values := payload[wire.InfoSize:]
			switch n := len(values); {
			case n%16 == 0: // raw: slices have 8 values or 4
				values = values[4*rng.IntN(n/4):]
			case n < 10 && n != 8: // a lattice's difference, which begins with a set
				values = values[1:]
			}
			binary.LittleEndian.PutUint32(values, math.Float32bits(value))
			return payload
		})
	}
}

// lengthen adds a value to a frame of slices.
func lengthen(*rand.Rand) sim.Tamper {
	return resealed(slicesOnly, func(payload []byte) []byte { return append(payload, 0, 0, 0, 0) })
}

// slicesOnly picks the frames that carry slices.
func slicesOnly(h wire.Header) bool { return h.Type == wire.TypeCode || h.Type == wire.TypeDiff }

// resealed changes the payloads of the frames picked, and seals them as their sender
// would.
func resealed(picked func(wire.Header) bool, change func(payload []byte) []byte) sim.Tamper {
	return func(frame []byte) [][]byte {
		h, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
		if err != nil || !picked(h) {
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
	replica.ErrOrder, replica.ErrWindow, replica.ErrImplausible, replica.ErrBound, replica.ErrSettled, replica.ErrCodec, replica.ErrBlocks,
	coding.ErrSize, coding.ErrNotFinite, coding.ErrScale, coding.ErrPadding, coding.ErrSpacing, coding.ErrHalf,
	sim.ErrReset, sim.ErrStalled, session.ErrAborted, session.ErrLaneMissing, wire.ErrRefused, sim.ErrUnreachable, io.ErrUnexpectedEOF,
}

func TestFramesTamperedWithAreRefusedByTypedErrorsAndLoseNothing(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"raw", "int8", "lattice6+4", "lattice4+1"} {
		for _, kind := range tamperings {
			t.Run(codec+"/"+kind.name, func(t *testing.T) {
				seen, counts := tampered(t, codec, 60, 8, 4*time.Second, kind)
				expected := 0
				for _, err := range kind.expects {
					expected += seen[err]
				}
				if expected == 0 {
					t.Errorf("saw %v, never %v", seen, kind.expects)
				}
				t.Logf("saw %v; %+v", seen, counts)
			})
		}
	}
}

// tampered lets a flock train while some of its frames are tampered with, checks that
// nothing is lost, and returns the errors that were met.
func tampered(t *testing.T, codec string, values, sliceLen int, lasting time.Duration, kind tampering) (map[error]int, sim.Counts) {
	t.Helper()
	rng := rand.New(rand.NewPCG(31, 0))
	seen := make(map[error]int)
	share := 0.1 // of the frames
	if kind.seldom {
		share = 0.02
	}
	training := newStirrer(35, values)
	training.scale = 5e-4 // so that what is absurd still stands out
	f := newFlock(t, plan{
		seed: 33, peers: 6, values: values, sliceLen: sliceLen, codec: codec, deadline: within(200 * time.Millisecond),
		initial: nearby,
		config: sim.Config{
			Task: direct{stepper: training}, Link: sim.Link{Delay: 300 * time.Microsecond, Bandwidth: 2e6},
			Terms: replica.Terms{Window: 4}, SettleAfter: 30 * time.Millisecond, Stall: time.Second, Quarantine: time.Microsecond,
			Hooks: sim.Hooks{
				Opened: func(s *sim.Stream) {
					way := rng.IntN(2)
					if !kind.oneWay || way == 0 {
						s.Tamper(s.From(), nowAndThen(rng, share, kind.tamper(rng)))
					}
					if !kind.oneWay || way == 1 {
						s.Tamper(s.To(), nowAndThen(rng, share, kind.tamper(rng)))
					}
				},
				Broke: func(_, _ int, err error) { note(t, seen, err) },
			},
		},
	})
	before, apart := f.sum(), f.spread()
	f.world.Run(lasting)
	f.comeToRest()
	for i := range before {
		before[i] += training.added[i]
	}
	most := 0.1 * apart
	if codec == "lattice4+1" {
		most = 0.4 * apart // a sign a value needs more exchanges than come through
	}
	f.checkSane(before, most)
	return seen, f.total()
}

// nearby are models that differ by a fifth or so, as those of a run do rather than models
// made by chance: a bound follows those slowly, and most exchanges break off here.
func nearby(rng *rand.Rand, _ int, x tensor.Vector) {
	for i := range x {
		x[i] = float32(math.Sin(float64(i))) + 0.2*(2*rng.Float32()-1)
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

// checkSane compares a flock whose peers began within [-1, 1) with what the sum should
// be, and with how far apart they may be.
func (f *flock) checkSane(before []float64, most float64) {
	f.t.Helper()
	if moved := drift(before, f.sum()); !(moved <= maxDrift) {
		f.t.Errorf("the sum moved by %g of itself, at most %g", moved, maxDrift)
	}
	if left := f.spread(); !(left < most) {
		f.t.Errorf("the peers are %g apart, at most %g: they hardly exchanged", left, most)
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
