package replica

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestWindowBoundsMemory: a lane of the passive side keeps as many frames as have been
// in flight at once, however many slices pass and whatever the window allows.
func TestWindowBoundsMemory(t *testing.T) {
	const slices, flying = 3 * MaxWindow, 3
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{slices}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: 1})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	p := NewResponder(r, NewLedger(r))
	p.Begin(Terms{Plan: coding.Uniform(codec), Window: MaxWindow})
	lane, code := p.Lane(0), append(wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: 1, Codec: uint8(codec.ID)}), 0, 0, 0, 0)
	for i := range slices {
		acknowledged := max(i-flying+1, 0)
		header := wire.Header{Type: wire.TypeCode, Slice: uint32(i), Ack: uint32(acknowledged)}
		if _, err := lane.Code(header, code); err != nil {
			t.Fatal(err)
		}
	}
	kept := len(lane.spare)
	for i := range lane.ring {
		if lane.ring[i].frame != nil {
			kept++
		}
	}
	if kept != flying {
		t.Errorf("%d frames kept, %d were in flight", kept, flying)
	}
}

// TestPendingIsBoundedInBytes: however long slices are, a lane sends none while the
// differences to come take too much of the other side's memory, and that side answers none.
func TestPendingIsBoundedInBytes(t *testing.T) {
	const length, fit = 1 << 16, maxPending / (tensor.ValueSize << 16)
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{(fit + 2) * length}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(tensor.NewParams(layout), Options{SliceLen: length})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	a, p := NewInitiator(r, NewLedger(r)), NewResponder(r, NewLedger(r))
	terms := Terms{Plan: coding.Uniform(codec), Window: MaxWindow}
	a.Begin(terms)
	p.Begin(terms)
	send := func(frame []byte) []byte {
		t.Helper()
		h, payload, err := wire.NewReader(bytes.NewReader(frame), wire.MaxPayload).Next()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.Lane(0).Code(h, payload)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(answer)
	}
	var answers [][]byte
	for {
		frame, ok, err := a.Lane(0).Code(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		answers = append(answers, send(frame))
	}
	if len(answers) != fit {
		t.Fatalf("%d slices under way, want %d", len(answers), fit)
	}
	beyond := append(wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: 1, Codec: uint8(codec.ID)}), make([]byte, tensor.ValueSize*length)...)
	if _, err := p.Lane(0).Code(wire.Header{Type: wire.TypeCode, Slice: fit}, beyond); !errors.Is(err, ErrWindow) {
		t.Errorf("one beyond the bound: %v, want %v", err, ErrWindow)
	}
	h, payload, err := wire.NewReader(bytes.NewReader(answers[0]), wire.MaxPayload).Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Lane(0).Diff(h, payload); err != nil {
		t.Fatal(err)
	}
	frame, ok, err := a.Lane(0).Code(nil)
	if err != nil || !ok {
		t.Fatalf("after a difference: %v, %v", ok, err)
	}
	send(frame)
}
