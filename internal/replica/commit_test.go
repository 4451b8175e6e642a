package replica

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// filled is a replica of so many values, all the same, in slices of eight.
func filled(t *testing.T, n int, value float32) *Replica {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = value
	}
	r, err := New(params, Options{SliceLen: 8})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// oneExchange carries an exchange of every slice through, one after the other.
func oneExchange(t *testing.T, a, p *Replica) {
	t.Helper()
	codec, err := coding.ByName("raw")
	if err != nil {
		t.Fatal(err)
	}
	active, passive := NewInitiator(a, NewLedger(a)), NewResponder(p, NewLedger(p))
	active.Begin(Terms{Plan: coding.Uniform(codec), Window: 1})
	passive.Begin(Terms{Plan: coding.Uniform(codec), Window: 1})
	header := func(frame []byte, ack uint32) wire.Header {
		return wire.Header{Slice: binary.LittleEndian.Uint32(frame[16:]), Ack: ack}
	}
	for n := range uint32(len(a.shared)) {
		frame, ok, err := active.Lane(0).Code(nil)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if frame, err = passive.Lane(0).Code(header(frame, n), frame[wire.HeaderSize:]); err != nil {
			t.Fatal(err)
		}
		if err := active.Lane(0).Diff(header(frame, 0), frame[wire.HeaderSize:]); err != nil {
			t.Fatal(err)
		}
		if active.Lane(0).Over() {
			t.Error("a lane that has not found out that nothing is left is over")
		}
	}
	if _, ok, err := active.Lane(0).Code(nil); ok || err != nil || !active.Lane(0).Over() {
		t.Error(ok, err, active.Lane(0).Over())
	}
	if err := passive.Lane(0).Ack(wire.Header{Ack: uint32(len(a.shared))}); err != nil {
		t.Fatal(err)
	}
	active.End(true)
	passive.End(0)
}

// TestWritersSaveWhatACopyNeeds: while a consistent copy is being made, whatever is
// about to change a slice saves it first, and once only.
func TestWritersSaveWhatACopyNeeds(t *testing.T) {
	const n = 20
	want := slices.Repeat(tensor.Vector{1}, n)
	for name, write := range map[string]func(a, p *Replica){
		"the active side of an exchange":  func(a, p *Replica) { oneExchange(t, a, p) },
		"the passive side of an exchange": func(a, p *Replica) { oneExchange(t, p, a) },
		"a step":                          func(a, _ *Replica) { a.Add(want) },
		"a restore": func(a, _ *Replica) {
			if err := a.RestoreShared(make(tensor.Vector, n)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		a, p := filled(t, n, 1), filled(t, n, 1.01)
		saved := make(tensor.Vector, n)
		a.copies.capture.Store(&capture{generation: 1, into: saved})
		write(a, p)
		a.Add(slices.Repeat(tensor.Vector{5}, n))
		if !slices.Equal(saved, want) || slices.Equal(a.values, want) {
			t.Errorf("%s: saved %v of %v", name, saved, a.values)
		}
	}
}

// TestDriftBeginsAnew: what an exchange, or a copy of another model, has moved a slice
// by is not the slice's own drift.
func TestDriftBeginsAnew(t *testing.T) {
	const n = 20
	drift := func(r *Replica) (sum float64) {
		for i := range r.slices {
			sum += r.slices[i].drift.moved(r.of(&r.slices[i]))
		}
		return sum
	}
	a, p := filled(t, n, 1), filled(t, n, 1.01)
	a.Add(slices.Repeat(tensor.Vector{1}, n))
	if got := drift(a); got < 1 {
		t.Errorf("after a step the drift is %g", got)
	}
	for range 5 {
		oneExchange(t, a, p)
		if x, y := drift(a), drift(p); x != 0 || y != 0 {
			t.Fatalf("after an exchange the drifts are %g and %g", x, y)
		}
	}
	if err := a.RestoreShared(make(tensor.Vector, n)); err != nil || drift(a) != 0 {
		t.Errorf("after a restore the drift is %g; error %v", drift(a), err)
	}
}
