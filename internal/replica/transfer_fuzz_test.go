package replica_test

import (
	"errors"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// FuzzPart takes any bytes in as PARTs of any transfer. Whatever they are, the error is
// one of those documented, what was refused has changed nothing, and what was taken in
// is finite and can be sent on.
func FuzzPart(f *testing.F) {
	values := make(tensor.Vector, 64)
	values[0], values[1] = 1.5, -2
	good := tensor.AppendBytes(wire.AppendPartInfo(nil, wire.PartInfo{Weight: 48, Codec: uint8(coding.Raw), Pieces: 1}), values)
	eight := append(wire.AppendPartInfo(nil, wire.PartInfo{Weight: 3, Codec: uint8(coding.Int8), Pieces: 2}), make([]byte, 104)...)
	eight[wire.PartInfoSize+3], eight[wire.PartInfoSize+4] = 0x3f, 0x7f
	nan := append([]byte(nil), good...)
	nan[wire.PartInfoSize+2], nan[wire.PartInfoSize+3] = 0xc0, 0x7f
	for kind, payload := range [][]byte{good, eight, nan, wire.AppendPartInfo(nil, wire.PartInfo{Pieces: 2}), good[:len(good)-1]} {
		f.Add(uint8(kind), uint32(0), payload)
	}
	f.Add(uint8(4), uint32(1), good)
	f.Fuzz(func(t *testing.T, kind uint8, first uint32, payload []byte) {
		transfers := []collective.Transfer{
			{From: collective.Sum, Into: collective.Sum, Add: true, Parts: 1}, {From: collective.Sum, Into: collective.Sum, Parts: 1},
			{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}, {From: collective.Gradient, Into: collective.Sum, Parts: 1},
			{From: collective.Parameters, Into: collective.Parameters, Parts: 1},
		}
		terms := replica.TransferTerms{Exchange: 7, Transfer: transfers[int(kind)%len(transfers)]}
		for _, name := range oneWay {
			terms.Codecs = append(terms.Codecs, codec(t, name).ID)
		}
		a := smallAveragers(t, 1)[0]
		if err := a.receiver.Begin(terms); err != nil {
			t.Fatal(err)
		}
		before, model := peekFrames(t, a), contents(a.Replica)
		err := a.receiver.Part(wire.Header{Type: wire.TypePart, Exchange: 7, Slice: first}, payload)
		if err != nil && (peekFrames(t, a) != before || !sameBits(model, contents(a.Replica))) {
			t.Fatalf("refused with %v, and taken in", err)
		}
		if err != nil {
			for _, known := range []error{
				replica.ErrOrder, replica.ErrCodec, replica.ErrImplausible, wire.ErrMessage,
				coding.ErrSize, coding.ErrNotFinite, coding.ErrScale, coding.ErrPadding,
			} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("undocumented error %v", err)
		}
		if !tensor.Finite(contents(a.Replica)) {
			t.Fatal("the parameters are not finite")
		}
		peekFrames(t, a)
		mean := make(tensor.Vector, a.Len())
		if a.Drain(mean, 0, 1, 0); math.IsNaN(tensor.Norm2(mean)) {
			t.Fatal("the mean is no gradient")
		}
	})
}

// peekFrames are the PARTs that tell of the sum.
func peekFrames(t tester, a *averager) (frames string) {
	t.Helper()
	m := collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: true, Parts: 1}
	if err := a.sender.Begin(terms(t, "raw", 1, m)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, ok, err := a.sender.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return frames
		}
		frames += string(frame)
	}
}
