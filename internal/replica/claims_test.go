package replica_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// hears carries an exchange through in which P claims another squared distance than it is, and
// returns A's frames.
func hears(t *testing.T, a, p *side, terms replica.Terms, claim func(squared float64) float64) (sent []byte) {
	t.Helper()
	x := begin(t, a, p, terms)
	l := x.lanes[0]
	for !a.initiator.Done() || !l.last {
		for l.send() {
			sent = append(sent, l.frame...)
		}
		l.answer()
		if l.toA.Len() == 0 {
			continue
		}
		header, payload, err := l.atA.Next()
		if err != nil {
			t.Fatal(err)
		}
		info, code, err := wire.SplitDiff(payload)
		if err != nil {
			t.Fatal(err)
		}
		info.SquaredDistance = claim(info.SquaredDistance)
		if err := l.a.Diff(header, append(wire.AppendDiffInfo(nil, info), code...)); err != nil {
			t.Fatal(err)
		}
	}
	x.finish()
	return sent
}

// TestAClaimedDistanceRaisesNoBound: whatever distance a partner claims that shows little, or
// fills the bound, whether or not the model has moved, the active side sends the same bounds and, with
// lattices, codes that are as coarse, to the last bit.
func TestAClaimedDistanceRaisesNoBound(t *testing.T) {
	for _, name := range slices.Concat(codecs, latticed) {
		for _, apart := range []float32{1e-3, 1} {
			for _, steps := range []float32{0, 1e-2} {
				told := func(claim func(float64) float64) (sent []byte) {
					first, second := blocky(t, apart)
					clipped := func(like *side) *side {
						params := tensor.NewParams(like.Layout())
						copy(params.Vector(), contents(like.Replica))
						return newSide(t, params, replica.Options{SliceLen: like.SliceLen()})
					}
					a, p := clipped(first), clipped(second)
					for i := range 20 {
						again(t, a, p, steps)
						sent = append(sent, hears(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 2, Exchange: uint64(i + 1)}, claim)...)
					}
					return sent
				}
				truth := told(func(squared float64) float64 { return squared })
				for _, claimed := range []float64{0, 1e30} {
					if !bytes.Equal(told(func(float64) float64 { return claimed }), truth) {
						t.Errorf("%s, %g apart, steps of %g: where a squared distance of %g is claimed A sends something else", name, apart, steps, claimed)
					}
				}
			}
		}
	}
}
