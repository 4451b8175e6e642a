package replica_test

import (
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// largest is the largest range that a side would tell a partner.
func largest(t *testing.T, s *side, terms replica.Terms) (most float32) {
	t.Helper()
	s.responder.Begin(terms)
	frame, ok, err := s.responder.Ranges(nil)
	if !ok || err != nil {
		t.Fatalf("no ranges: %v", err)
	}
	for _, code := range frame[wire.HeaderSize:] {
		most = max(most, coding.RangeOf(code))
	}
	return most
}

// acquainted are two peers of blocky that bound what they believe, and have met more
// often than a bound remembers.
func acquainted(t *testing.T, name string, apart float32) (a, p *side) {
	t.Helper()
	first, second := blocky(t, apart)
	clipped := func(like *side) *side {
		params := tensor.NewParams(like.Layout())
		copy(params.Vector(), contents(like.Replica)) // not added: that would be a stride
		return newSide(t, params, replica.Options{SliceLen: like.SliceLen()})
	}
	a, p = clipped(first), clipped(second)
	for i := range 20 {
		carry(t, a, p, name, uint64(2*i+1))
	}
	return a, p
}

// A liar whose model is far away is not believed: else honest partners would take it
// that they are as far apart from each other, and code with lattices that tell nothing.
func TestLiarDoesNotMakeLatticesCoarse(t *testing.T) {
	const apart, far, most = 1e-3, 1000, 0.3 // 2 % of the norm, by which models are clipped, and some more where they were
	for _, c := range []struct {
		name string
		lies func(a, p *side) (liar, honest *side)
	}{
		{"active", func(a, p *side) (*side, *side) { return a, p }},
		{"passive", func(a, p *side) (*side, *side) { return p, a }},
	} {
		for _, name := range latticed {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				a, p := acquainted(t, name, apart)
				liar, honest := c.lies(a, p)
				lie := make(tensor.Vector, liar.Len())
				for i := range lie {
					lie[i] = far
				}
				liar.Add(lie)
				carry(t, a, p, name, 41)
				terms := replica.Terms{Plan: coding.Uniform(codec(t, name)), Exchange: 43}
				if r := largest(t, honest, terms); r > most {
					t.Errorf("after a lie of %d a block's range is %g, at most %g", far, r, most)
				}
			})
		}
	}
}

// Honest models that have come to be far apart are found out about: their blocks fail a
// few times, and then no more.
func TestRangesFollowModelsThatPart(t *testing.T) {
	const apart, far, most = 1e-3, 1, 40 // exchanges in which blocks fail
	for _, name := range latticed {
		t.Run(name, func(t *testing.T) {
			a, p := acquainted(t, name, apart)
			again(t, a, p, far)
			failing := 0
			for i := range 3 * most {
				if units := carry(t, a, p, name, uint64(2*i+41)); len(units) > 3 {
					failing = i + 1
				}
			}
			if failing == 0 || failing > most {
				t.Errorf("blocks failed up to exchange %d, want in the first ones, at most %d", failing, most)
			}
		})
	}
}
