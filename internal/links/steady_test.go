package links

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
)

// TestLinksDoNotFlap: on a link that stays as it is, however near a bound it lies, and
// whose samples differ by a fifth, the choice changes at most once; and what is chosen
// is right but for the margin.
func TestLinksDoNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := demand{values: million, step: step, deadline: deadline}
		steps := math.Pow(2, rapid.Float64Range(-1, 12).Draw(t, "log of an exchange's steps"))
		round := time.Duration(rapid.Float64Range(0, 0.9).Draw(t, "share of waiting") / (rounds + 1) * steps * float64(d.step))
		rate := float64(d.values) / (steps*d.step.Seconds() - (rounds+1)*round.Seconds())
		var k Link
		changes := 0
		for range 200 {
			noise := func() float64 { return rapid.Float64Range(0.8, 1.25).Draw(t, "noise") }
			s := Sample{Bytes: 600_000, Round: time.Duration(noise() * float64(round))}
			s.Agreed = s.Round
			s.Took = s.Agreed + rounds*s.Round + time.Duration(600_000/(noise()*rate)*float64(time.Second))
			k.saw(s)
			before := k.choice
			if got := k.choose(d); got.codec != choices()[before] {
				changes++
			}
		}
		if changes > 1 {
			t.Fatalf("%d changes on a link on which an exchange takes %.3g steps", changes, steps)
		}
		const near = margin * 1.25
		waits := (rounds + 1) * round.Seconds()
		middle := waits + (steps*d.step.Seconds()-waits)*6/8 // bits of 6+4 and 8+4
		for i, load := range []float64{steps / comfortSteps, middle / (timelyShare * d.deadline.Seconds())} {
			chosen := k.choice
			if load > near && chosen <= i || load < 1/near && chosen > i {
				t.Fatalf("%.3g steps, %.3g s with the middle codec: choice %d", steps, middle, chosen)
			}
		}
	})
}

// TestLinksFollow: a link that becomes five thousand times slower, and fast again, is
// noticed within a few exchanges, either way.
func TestLinksFollow(t *testing.T) {
	var k Link
	d := demand{values: million, step: step, deadline: deadline}
	for _, c := range []struct {
		rate   float64
		failed float64
		want   coding.ID
	}{
		{100e6, 0, coding.Lattice8to4}, {0.02e6, 0, coding.Lattice4to1}, {100e6, 0, coding.Lattice8to4},
		{3e6, 0, coding.Lattice6to4}, {3e6, 0.08, coding.Lattice8to4},
		{3e6, 0.04, coding.Lattice8to4}, // fails less, but not yet little
		{3e6, 0, coding.Lattice6to4},
	} {
		const few = 10
		for range few {
			k.saw(exchangeOver(c.rate, c.failed))
			k.choose(d)
		}
		if got := k.choose(d); got.codec != c.want {
			t.Errorf("%.3g bytes a second, %g of the blocks failing: codec %d after %d exchanges, want %d", c.rate, c.failed, got.codec, few, c.want)
		}
	}
}
