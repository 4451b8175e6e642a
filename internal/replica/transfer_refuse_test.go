package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

func TestTransfersThatCannotBe(t *testing.T) {
	const p, g, s = collective.Parameters, collective.Gradient, collective.Sum
	for _, m := range []collective.Transfer{
		{From: p, Into: p, Add: true, Parts: 1}, {From: p, Into: s, Parts: 1}, {From: s, Into: p, Parts: 1},
		{From: g, Into: p, Parts: 1}, {From: g, Into: g, Parts: 1}, {From: s, Into: g, Parts: 1},
		{From: collective.Buffers, Into: collective.Buffers, Parts: 1},
		{From: s, Into: s}, {From: s, Into: s, Part: 2, Parts: 2}, {From: s, Into: s, Part: -1, Parts: 2},
		{From: s, Into: s, Parts: wire.MaxParts + 1},
	} {
		if err := terms(t, "raw", 1, m).Check(); !errors.Is(err, replica.ErrTransfer) {
			t.Errorf("%v: %v", m, err)
		}
	}
	a := smallAveragers(t, 1)[0]
	m := collective.Transfer{From: s, Into: s, Parts: 1}
	for _, name := range latticed {
		err := a.sender.Begin(terms(t, name, 1, m))
		if !errors.Is(err, replica.ErrLattice) || !strings.Contains(err.Error(), "raw, bf16, fp16 or int8") {
			t.Errorf("a transfer with %s: %v", name, err)
		}
	}
	if err := a.receiver.Begin(replica.TransferTerms{Transfer: m, Codecs: []coding.ID{99}}); !errors.Is(err, replica.ErrCodec) {
		t.Errorf("an unknown codec: %v", err)
	}
	bare, err := replica.New(smallModel(t, rand.New(rand.NewPCG(1, 1)), nil), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if replica.NewReceiver(bare).Begin(terms(t, "raw", 1, m)) == nil {
		t.Error("a replica without the buffers takes part in a transfer of sums")
	}
}

// A receiver looks at all of a PART before it touches anything.
func TestReceiverRefuses(t *testing.T) {
	all := smallAveragers(t, 2)
	a, b := all[0], all[1]
	rng := rand.New(rand.NewPCG(1, 1))
	a.put(t, rng, 3)
	b.put(t, rng, 2)
	if err := b.Load(0, 1, false, false); err != nil {
		t.Fatal(err)
	}
	m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}
	part := func(info wire.PartInfo, values ...float32) []byte {
		return tensor.AppendBytes(wire.AppendPartInfo(nil, info), values)
	}
	long := make([]float32, 64)
	spoilt := func(v float64) []float32 { return append([]float32{float32(v)}, long[1:]...) }
	one := wire.PartInfo{Weight: 1, Codec: uint8(coding.Raw), Pieces: 1}
	heavy, light, other, many := one, one, one, one
	heavy.Weight, light.Weight, other.Codec, many.Pieces = wire.MaxWeight, 0, uint8(coding.BF16), 3
	for _, c := range []struct {
		name    string
		header  wire.Header
		payload []byte
		err     error
	}{
		{"another transfer", wire.Header{Exchange: 8}, part(one, long...), replica.ErrOrder},
		{"another piece", wire.Header{Exchange: 7, Slice: 1}, part(one, long...), replica.ErrOrder},
		{"pieces of two slices", wire.Header{Exchange: 7}, part(many, make([]float32, 164)...), replica.ErrOrder},
		{"pieces that are not", wire.Header{Exchange: 7}, part(wire.PartInfo{Weight: 1, Codec: 1, Pieces: math.MaxUint32}), replica.ErrOrder},
		{"a value too few", wire.Header{Exchange: 7}, part(one, long[1:]...), coding.ErrSize},
		{"no header", wire.Header{Exchange: 7}, []byte{1, 2, 3}, wire.ErrMessage},
		{"another codec", wire.Header{Exchange: 7}, part(other, long[:32]...), replica.ErrCodec},
		{"NaN", wire.Header{Exchange: 7}, part(one, spoilt(math.NaN())...), replica.ErrImplausible},
		{"infinite", wire.Header{Exchange: 7}, part(one, spoilt(math.Inf(1))...), replica.ErrImplausible},
		{"huge", wire.Header{Exchange: 7}, part(one, spoilt(1e9)...), replica.ErrImplausible},
		{"too heavy", wire.Header{Exchange: 7}, part(heavy, long...), replica.ErrImplausible},
		{"no samples", wire.Header{Exchange: 7}, part(light), replica.ErrImplausible},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, weights := b.peek(t)
			if err := b.receiver.Begin(terms(t, "raw", 7, m)); err != nil {
				t.Fatal(err)
			}
			c.header.Type = wire.TypePart
			err := b.receiver.Part(c.header, c.payload)
			// Where a codec has to decode raw values, it is the one to refuse them.
			undecodable := c.err == replica.ErrImplausible && errors.Is(err, coding.ErrNotFinite)
			if !errors.Is(err, c.err) && !undecodable {
				t.Errorf("error is %v, want %v", err, c.err)
			}
			after, weighed := b.peek(t)
			if !sameBits(values, after) || weights[0] != weighed[0] || b.receiver.Done() {
				t.Error("it has changed the sum, or counts")
			}
			if err := b.receiver.Part(wire.Header{Exchange: 7}, part(one, long...)); err != nil {
				t.Errorf("what should have come is refused: %v", err)
			}
		})
	}
}

// An honest sender whose values are none says so, and sends nothing that a receiver
// would blame it for.
func TestSenderRefuses(t *testing.T) {
	m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Parts: 1}
	for _, c := range []struct {
		codec string
		value float32
		err   error
	}{{"fp16", 70_000, replica.ErrTooLarge}, {"bf16", 70_000, nil}, {"raw", 1e9, replica.ErrDiverged}, {"int8", 1e9, replica.ErrDiverged}} {
		a := smallAveragers(t, 1)[0]
		gradient := make(tensor.Vector, a.Len())
		gradient[3] = c.value
		if err := a.PutRange(gradient, 0, len(gradient), 1); err != nil {
			t.Fatal(err)
		}
		if err := a.sender.Begin(terms(t, c.codec, 1, m)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.sender.Next(nil); !errors.Is(err, c.err) {
			t.Errorf("%g as %s: %v, want %v", c.value, c.codec, err, c.err)
		}
	}
}

// Transfers of several parts run at once while others add and the trainer drains:
// nothing is lost or counted twice.
func TestTransfersRace(t *testing.T) {
	const senders, rounds, values = 3, 20, 40_000
	to := largeAverager(t, values)
	var group sync.WaitGroup
	for i := range senders {
		from := largeAverager(t, values)
		ones := make(tensor.Vector, values)
		for j := range ones {
			ones[j] = 1
		}
		if err := from.PutRange(ones, 0, len(ones), 2); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			mine := &averager{Replica: to.Replica, receiver: replica.NewReceiver(to.Replica)}
			for round := range rounds {
				for part := range senders {
					m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Part: (i + part) % senders, Parts: senders}
					from.send(t, mine, terms(t, "bf16", uint64(round), m), whole)
				}
			}
		})
	}
	total, mean := make(tensor.Vector, values), make(tensor.Vector, values)
	for range rounds {
		to.Drain(mean, 0, 1, 1)
		tensor.Add(total, mean)
	}
	group.Wait()
	to.Drain(mean, 0, 1, 1)
	tensor.Add(total, mean)
	for i, v := range total {
		if v != 2*senders*rounds {
			t.Fatalf("value %d is %g, want %d", i, v, 2*senders*rounds)
		}
	}
}

// TestTransferAllocatesNothing: neither does what a round does beside.
func TestTransferAllocatesNothing(t *testing.T) {
	const values = 2*replica.DefaultSliceLen + 100
	for _, name := range oneWay {
		round := roundOf(t, name, values)
		round()
		if n := testing.AllocsPerRun(20, round); n != 0 {
			t.Errorf("%s: a round allocates %g times", name, n)
		}
	}
}

// roundOf is what two peers do in a round: gradients are put and loaded, one part is
// added and passed back, and the sum is drained.
func roundOf(t tester, name string, values int) func() {
	all := []*averager{largeAverager(t, values), largeAverager(t, values)}
	gradient := make(tensor.Vector, values)
	for i := range gradient {
		gradient[i] = float32(i%7) * 1e-3
	}
	exchange := uint64(0)
	add := terms(t, name, 0, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1})
	pass := terms(t, name, 0, collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 1})
	add.Codecs, pass.Codecs = add.Plan.Codecs(), pass.Plan.Codecs()
	return func() {
		for _, a := range all {
			if err := a.PutRange(gradient, 0, len(gradient), 16); err != nil {
				t.Fatal(err)
			}
			if err := a.Load(0, 1, false, false); err != nil {
				t.Fatal(err)
			}
		}
		exchange++
		add.Exchange, pass.Exchange = exchange, exchange
		all[0].send(t, all[1], add, whole)
		all[1].send(t, all[0], pass, whole)
		for _, a := range all {
			a.Drain(gradient, 0, 1, 0)
		}
	}
}

// BenchmarkTransfer moves a model of a million values one way, and back.
func BenchmarkTransfer(b *testing.B) {
	const values = 1 << 20
	for _, name := range oneWay {
		b.Run(name, func(b *testing.B) {
			round := roundOf(b, name, values)
			round()
			b.SetBytes(2 * tensor.ValueSize * values)
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}
