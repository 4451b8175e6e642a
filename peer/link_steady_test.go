package peer

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/quant"
)

// TestLinksDoNotFlap: on a link that stays as it is, however near a bound it lies, and
// whose samples differ by a fifth, the choice changes at most once; and what is chosen
// is right but for the margin.
func TestLinksDoNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := demand{values: 1_000_000, step: 10 * time.Millisecond, deadline: averaging.DefaultDeadline}
		steps := math.Pow(2, rapid.Float64Range(-1, 12).Draw(t, "log of an exchange's steps"))
		round := time.Duration(rapid.Float64Range(0, 0.9).Draw(t, "share of waiting") / (rounds + 1) * steps * float64(d.step))
		rate := float64(d.values) / (steps*d.step.Seconds() - (rounds+1)*round.Seconds())
		var l links
		changes := 0
		for range 200 {
			noise := func() float64 { return rapid.Float64Range(0.8, 1.25).Draw(t, "noise") }
			s := sample{bytes: 600_000, round: time.Duration(noise() * float64(round))}
			s.agreed = s.round
			s.took = s.agreed + rounds*s.round + time.Duration(600_000/(noise()*rate)*float64(time.Second))
			l.saw("p", s, time.Now())
			before := l.known["p"].choice
			if got := l.choose("p", d); got.codec != choices()[before] {
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
			chosen := l.known["p"].choice
			if load > near && chosen <= i || load < 1/near && chosen > i {
				t.Fatalf("%.3g steps, %.3g s with the middle codec: choice %d", steps, middle, chosen)
			}
		}
	})
}

// TestLinksFollow: a link that becomes five thousand times slower, and fast again, is
// noticed within a few exchanges, either way.
func TestLinksFollow(t *testing.T) {
	var l links
	d := demand{values: 1_000_000, step: 10 * time.Millisecond, deadline: averaging.DefaultDeadline}
	for _, c := range []struct {
		rate   float64
		failed float64
		want   quant.ID
	}{
		{100e6, 0, quant.Lattice8to4}, {0.02e6, 0, quant.Lattice4to1}, {100e6, 0, quant.Lattice8to4},
		{3e6, 0, quant.Lattice6to4}, {3e6, 0.08, quant.Lattice8to4},
		{3e6, 0.04, quant.Lattice8to4}, // fails less, but not yet little
		{3e6, 0, quant.Lattice6to4},
	} {
		const few = 10
		for range few {
			l.saw("p", exchangeOver(c.rate, c.failed), time.Now())
			l.choose("p", d)
		}
		if got := l.choose("p", d); got.codec != c.want {
			t.Errorf("%.3g bytes a second, %g of the blocks failing: codec %d after %d exchanges, want %d", c.rate, c.failed, got.codec, few, c.want)
		}
	}
}

// TestLinkStatsAreBounded: those used last are listed, in order.
func TestLinkStatsAreBounded(t *testing.T) {
	var l links
	at := time.Now()
	const partners = 3 * MaxLinkStats
	for i := range partners {
		l.saw(letter(i), exchangeOver(1e6, 0), at.Add(-time.Duration(i))) // the first are the last used
	}
	for _, choosing := range []bool{true, false} {
		var s ExchangeStats
		l.report(&s, choosing)
		if len(s.Links) != MaxLinkStats {
			t.Fatalf("%d links are listed, at most %d", len(s.Links), MaxLinkStats)
		}
		for i, one := range s.Links {
			if one.Partner != letter(i) || one.Exchanges != 1 || (one.Codec == "lattice6+4") != choosing {
				t.Errorf("link %d: %+v", i, one)
			}
		}
		if choosing && s.Codecs["lattice6+4"] != partners || !choosing && s.Codecs != nil {
			t.Errorf("links decide: %v; codecs %v", choosing, s.Codecs)
		}
	}
}
