package replica

import (
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
