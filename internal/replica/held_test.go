package replica

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// BenchmarkLockHeld is for how long a slice's lock is held by what an exchange does
// with a slice of the default length: at most so long a trainer can wait for it.
func BenchmarkLockHeld(b *testing.B) {
	for _, name := range []string{"raw", "bf16"} {
		codec, err := coding.ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		r, s := oneBigSlice(b)
		code := make([]byte, codec.Code.Size(s.length))
		diff, theirs := make(tensor.Vector, s.length), make(tensor.Vector, s.length)
		near := make([]byte, len(code))
		for i := range theirs {
			theirs[i] = 1 + boundFloor/2
		}
		codec.Code.Encode(near, theirs)
		lane := &ResponderLane{of: &Responder{side: side{replica: r, weight: 0.5, trust: 1}}, scratch: make(tensor.Vector, s.length)}
		active := &InitiatorLane{of: NewInitiator(r, NewLedger(r))}
		for range boundWindow { // from then on the norm is not taken each time
			lane.of.remember(s, 0, 1)
		}
		held(b, name+"/code", func() { codec.Encode(code, r.of(s)); _ = r.limit(s, false) })
		weigh := func(theirLimit float64) func() {
			return func() {
				if _, _, err := lane.weigh(s, codec.Code, diff, near, theirLimit); err != nil {
					b.Fatal(err)
				}
			}
		}
		held(b, name+"/difference", weigh(math.Inf(1)))
		held(b, name+"/clipped", weigh(1))
		clear(diff) // so that the slice stays as it is
		held(b, name+"/subtract", func() { active.subtract(s, &inFlight{}, &difference{values: diff}, sighting{distance: 1}) })
		held(b, name+"/commit", func() {
			r.copies.preserve(s, r.of(s))
			tensor.Add(r.of(s), diff)
			s.drift.mark(r.of(s), nil)
		})
	}
}

func held(b *testing.B, name string, work func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			work()
		}
	})
}

func oneBigSlice(b testing.TB) (*Replica, *slice) {
	b.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{DefaultSliceLen}})
	if err != nil {
		b.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = 1
	}
	r, err := New(params, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return r, &r.slices[0]
}
