package quant

import (
	"errors"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// pair is two slices that are at most so far apart.
func pair(n int, apart float32) (active, passive tensor.Vector) {
	active, passive = make(tensor.Vector, n), make(tensor.Vector, n)
	for i := range active {
		passive[i] = float32((i*i*37+i*101)%2047-1023) / 1024
		active[i] = passive[i] + apart*float32((i*53)%201-100)/100
	}
	return active, passive
}

// TestExchangeBySlices shows for every codec that two that exchange slices come nearer,
// that their sum stays as it was, and that both see the same difference.
func TestExchangeBySlices(t *testing.T) {
	const n, far = BlockLen + 300, 0.01
	for _, name := range Names() {
		codec, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, known := ByID(codec.ID()); !known || again != codec || codec.Name() != name {
			t.Errorf("%s is number %d, which is %s", name, codec.ID(), again.Name())
		}
		for _, apart := range [][]float32{nil, {far, far}, {far, 0}} {
			active, passive := pair(n, far)
			before := tensor.SquaredDistance(active, passive)
			code, diff, half := make([]byte, codec.MaxSize(n)), make([]byte, codec.DiffSize(n)), make(tensor.Vector, n)
			code = code[:codec.Encode(code, active, apart)]
			seen := make(tensor.Vector, n)
			if err := codec.Decode(seen, code, passive); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if wrong := tensor.SquaredDistance(seen, active); wrong > 0.7*before {
				t.Errorf("%s: decoded %v from the values, which are %v from the reference", name, math.Sqrt(wrong), math.Sqrt(before))
			}
			if err := errors.Join(codec.Answer(diff, code, passive, seen, 0.5), codec.DecodeDiff(half, diff)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sum := tensor.Vector{active[5] + passive[5]}
			tensor.Sub(active, half)
			tensor.Add(passive, half)
			if after := tensor.SquaredDistance(active, passive); after > 0.9*before {
				t.Errorf("%s: squared distance %v becomes %v", name, before, after)
			}
			if now := active[5] + passive[5]; math.Abs(float64(now-sum[0])) > 1e-6 {
				t.Errorf("%s: a sum of %v becomes %v", name, sum[0], now)
			}
		}
	}
}

// TestDifferencesThatNoCodeHolds: an answer that could not be read is none.
func TestDifferencesThatNoCodeHolds(t *testing.T) {
	const n = BlockLen
	for _, name := range Names() {
		codec, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		active, passive, scratch := make(tensor.Vector, n), make(tensor.Vector, n), make(tensor.Vector, n)
		for i := range active {
			active[i], passive[i] = 6e4, -3e38 // the first is what halves hold, the other a sick model's
		}
		code, diff := make([]byte, codec.MaxSize(n)), make([]byte, codec.DiffSize(n))
		code = code[:codec.Encode(code, active, nil)]
		answered := codec.Answer(diff, code, passive, scratch, 1)
		if read := codec.DecodeDiff(scratch, diff); answered == nil && read != nil || answered != nil && !errors.Is(answered, ErrApart) {
			t.Errorf("%s: answered with %v, read with %v", name, answered, read)
		}
	}
}

// TestBadCodesAreRefused: codes of another length, and slices that are not as near as the
// sender believed.
func TestBadCodesAreRefused(t *testing.T) {
	const n = BlockLen + 300
	active, passive := pair(n, 0.5)
	for _, name := range Names() {
		codec, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		code, diff, dst := make([]byte, codec.MaxSize(n)), make([]byte, codec.DiffSize(n)), make(tensor.Vector, n)
		code = code[:codec.Encode(code, active, nil)]
		for _, err := range []error{
			codec.Decode(dst, code[1:], passive), codec.Answer(diff, code[1:], passive, dst, 0.5), codec.DecodeDiff(dst, diff[1:]),
		} {
			if !errors.Is(err, ErrCode) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if !codec.Lattice() {
			continue
		}
		code = code[:codec.Encode(code[:cap(code)], active, []float32{1e-4, 0.5})]
		if err := codec.Decode(dst, code, passive); !errors.Is(err, ErrApart) || dst[3] != passive[3] {
			t.Errorf("%s: error %v, %v beside %v", name, err, dst[3], passive[3])
		}
		if err := codec.Answer(diff, code, passive, dst, 0.5); !errors.Is(err, ErrApart) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, id := range []uint8{0, 5, 32} {
		if codec, known := ByID(id); known || codec.Lattice() {
			t.Errorf("number %d is %s", id, codec.Name())
		}
	}
	if _, err := ByName("zip"); !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v", err)
	}
	for _, reason := range []error{coding.ErrSize, coding.ErrNotFinite, coding.ErrScale, coding.ErrPadding, coding.ErrSpacing, coding.ErrHalf} {
		if !errors.Is(reason, ErrCode) {
			t.Errorf("%v is no ErrCode", reason)
		}
	}
}
