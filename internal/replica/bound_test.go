package replica

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

// ofNorm is a slice of that norm.
func ofNorm(norm float32) tensor.Vector { return tensor.Vector{0, norm, 0} }

// meets is an exchange of one slice at both sides, neither of which has moved by itself:
// the bounds of the moment, then the distance as it is believed.
func meets(a, p *bound, own tensor.Vector, distance float64) (limit float64) {
	limit = min(a.limit(own, 0), p.limit(own, 0))
	a.add("p", distance, limit)
	p.add("p", distance, limit)
	return limit
}

// TestBoundIsAShareOfTheMedianOfWhatPartnersShowed: of the last distance to each.
func TestBoundIsAShareOfTheMedianOfWhatPartnersShowed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := bound{moves: true}
	var last []meeting
	for n := range 100 {
		partner, distance := fmt.Sprint(n%(2+n/10)), 1+rng.Float64() // never beyond what is let in
		b.add(partner, distance, math.Inf(1))
		last = slices.DeleteFunc(last, func(m meeting) bool { return m.partner == partner })
		last = append(last, meeting{partner: partner, distance: float32(distance)})
		last = last[max(0, len(last)-boundWindow):]
		var sorted []float64
		for _, m := range last {
			sorted = append(sorted, float64(m.distance))
		}
		slices.Sort(sorted)
		if got, want := b.limit(ofNorm(1), 0), boundTrust*sorted[(len(sorted)-1)/2]; got != want {
			t.Fatalf("after %d distances the bound is %g, want %g", n+1, got, want)
		}
	}
}

func TestDistanceEntersAsAtMostSoManyTimesTheBound(t *testing.T) {
	for _, c := range []struct{ distance, limit, want float64 }{
		{1, 1, 1},
		{boundGrowth, 1, boundGrowth},
		{3, 1, boundGrowth},
		{1e300, 1, boundGrowth},
		{1e300, math.Inf(1), math.MaxFloat32},
		{math.Inf(1), 3, 3 * boundGrowth},
		{0, 0, 0},
		{5, 0, 0},
	} {
		var b bound
		if got := b.add("p", c.distance, c.limit); got != c.want {
			t.Errorf("a distance of %g within %g enters as %g, want %g", c.distance, c.limit, got, c.want)
		}
		if got := float64(b.meetings[0].distance); got != float64(float32(c.want)) || b.seen != 1 {
			t.Errorf("a distance of %g within %g is kept as %g of %d, want %g of 1", c.distance, c.limit, got, b.seen, c.want)
		}
	}
}

// TestOneWhoComesBackToBackHasOneEntry: however often a partner comes, whatever it shows
// and whatever bound it announces, what is believed stays within what the others showed.
func TestOneWhoComesBackToBackHasOneEntry(t *testing.T) {
	own := ofNorm(1)
	for _, partners := range []uint64{2, 3, 4, 9} {
		b := bound{moves: true}
		for i := range partners {
			b.add(fmt.Sprint(i), 1, math.Inf(1))
		}
		for range 1000 {
			b.add("liar", 1e30, min(b.limit(own, 0), math.Inf(1)))
		}
		if got := b.limit(own, 0); got > boundTrust {
			t.Errorf("%d partners: one more that comes a thousand times has raised the bound to %g, want %g", partners, got, boundTrust)
		}
	}
}

// TestClaimsRaiseABoundSlowly: where all partners claim any distance, the bound of a slice that
// has moved grows by an eighth with each exchange, and where fewer than half do not beyond its
// own way.
func TestClaimsRaiseABoundSlowly(t *testing.T) {
	for _, c := range []struct{ partners, liars int }{{1, 1}, {3, 3}, {2, 1}, {3, 1}, {9, 4}} {
		own, b := ofNorm(1), bound{}
		b.limit(own, 1)
		b.add("honest 0", 0.1, 1)
		before := 1.01 * boundDrift
		for n := range 100 {
			limit := b.limit(own, 0.1)
			if c.liars == c.partners && limit > 1.126*before || c.liars < c.partners && limit > 1.01*boundDrift {
				t.Fatalf("%+v: after %d exchanges the bound is %g, before %g", c, n, limit, before)
			}
			before = max(before, limit)
			if i := n % c.partners; i >= c.partners-c.liars {
				b.add(fmt.Sprint("liar ", i), 1e30, limit)
			} else {
				b.add(fmt.Sprint("honest ", i), 0.1, limit)
			}
		}
	}
}

// TestShownDistancesEnterTheWindow: one that fills the bound as what that may grow to, any other
// as it is; and an entry falls by a quarter at most.
func TestShownDistancesEnterTheWindow(t *testing.T) {
	for _, c := range []struct {
		moves               bool
		before              float32
		shown, limit, trust float64
		want                float64
	}{
		{true, 0, 0.5, 1, 1, 0.5},
		{true, 0, 1, 1, 1, movingGrowth},
		{false, 0, 1, 1, 1, boundGrowth},
		{true, 0, 0.5, 0.5, 0.5, movingGrowth}, // a partner that is trusted less lowers nothing for others
		{true, 4, 0.5, 1, 1, 3},
		{true, 4, 1, 1, 1, 3},
		{true, 0.5, 0.5, 1, 1, 0.5},
	} {
		b := bound{moves: c.moves, stride: 1000}
		if c.before > 0 {
			b.meetings[0], b.seen = meeting{partner: "p", distance: c.before}, 1
		}
		if got := b.show("p", c.shown, c.limit, c.trust); got != c.want || b.meetings[0].distance != float32(c.want) || b.seen != 1 {
			t.Errorf("%+v: it enters as %g, and is kept as %g of %d", c, got, b.meetings[0].distance, b.seen)
		}
	}
}

// TestBoundFollowsTheStride: the bound is a multiple of the longest way that the slice has
// gone by itself, and falls with it, however far one of two partners is.
func TestBoundFollowsTheStride(t *testing.T) {
	own, b := ofNorm(1), bound{moves: true}
	b.add("far", 1000, math.Inf(1))
	b.add("near", 0, math.Inf(1))
	if got := b.limit(own, 2); got != 2*boundDrift {
		t.Errorf("after a way of 2 the bound is %g, want %g", got, 2*boundDrift)
	}
	for n := range 1000 {
		b.add("far", 1000, 1)
		want := max(2*boundDrift*math.Pow(strideKept, float64(n)), boundFloor)
		if got := b.limit(own, 0); math.Abs(got-want) > 1e-3*want {
			t.Fatalf("%d exchanges after a way of 2 the bound is %g, want %g", n+1, got, want)
		}
	}
}

// TestStrideIsBelievedUpToTheMedian: a slice that moves much among models that are near
// does not believe what is far.
func TestStrideIsBelievedUpToTheMedian(t *testing.T) {
	own, b := ofNorm(1), bound{moves: true}
	b.limit(own, 100)
	for _, partner := range []string{"a", "b", "liar"} {
		b.add(partner, 1+1e6*float64(len(partner)-1), math.Inf(1))
	}
	if got := b.limit(own, 0); got != 1 {
		t.Errorf("of two at 1 and one far away %g is believed, want 1", got)
	}
}

// TestBoundLetsEqualModelsPart: models that were equal for as long as the window
// remembers can become different; a slice that has always been zero too.
func TestBoundLetsEqualModelsPart(t *testing.T) {
	for _, norm := range []float32{0, 1e-40, 1e-12, 1, 1e12} {
		var a, p bound
		own := ofNorm(norm)
		for range 50 {
			meets(&a, &p, own, 0)
		}
		far := 10 * max(1, float64(norm))
		n := 0
		for ; meets(&a, &p, own, far) < far*(1-1e-6); n++ {
			if n == 1000 {
				t.Fatalf("norm %g: after %d distances of %g the bound is %g", norm, n, far, a.limit(own, 0))
			}
		}
		if most := 5*int(math.Ceil(math.Log2(far/max(unmovedFloor*float64(norm), 1e-30)))) + boundWindow; n > most {
			t.Errorf("norm %g: it takes %d exchanges to follow, at most %d", norm, n, most)
		}
	}
}

// TestBoundFollowsHowModelsGrow: the norm that the floor is a share of is taken anew
// often enough.
func TestBoundFollowsHowModelsGrow(t *testing.T) {
	var a, p bound
	for range 20 {
		meets(&a, &p, ofNorm(1), 0)
	}
	own := ofNorm(1000)
	for range normEvery {
		meets(&a, &p, own, 0)
	}
	if got, want := a.limit(own, 0), unmovedFloor*1000; math.Abs(got-want) > 1e-9 {
		t.Errorf("the bound is %g, want %g", got, want)
	}
}

// TestNormIsTakenNowAndThen: after each of the first distances, and then seldom, however few
// the partners are.
func TestNormIsTakenNowAndThen(t *testing.T) {
	var a, p bound
	taken := 0
	const exchanges = boundWindow + 4*normEvery
	for i := range exchanges {
		meets(&a, &p, ofNorm(float32(i+1)), 0)
		if a.norm == float64(i+1) {
			taken++
		}
	}
	if want := boundWindow + 4; taken != want {
		t.Errorf("the norm was taken %d times in %d exchanges, want %d", taken, exchanges, want)
	}
}

// TestMinorityOfLiarsCannotMoveTheBound: as long as fewer than half of a slice's partners
// lie, the bound stays within what honest partners showed, however often the liars come,
// whatever they claim and whichever bounds they announce.
func TestMinorityOfLiarsCannotMoveTheBound(t *testing.T) {
	const least, most = 1.0, 1.5
	rapid.Check(t, func(t *rapid.T) {
		own := ofNorm(1)
		honest := rapid.Uint64Range(2, 6).Draw(t, "honest")
		liars := rapid.Uint64Range(1, min(honest-1, boundWindow-honest)).Draw(t, "liars")
		b := bound{moves: true}
		for i := range honest {
			b.add(fmt.Sprint(i), rapid.Float64Range(least, most).Draw(t, "before"), math.Inf(1))
		}
		for range 60 {
			n := rapid.Uint64Range(0, honest+liars-1).Draw(t, "partner")
			partner := fmt.Sprint(n)
			limit := b.limit(own, 0)
			if n >= honest {
				b.add(partner, rapid.Float64Range(0, 1e300).Draw(t, "claimed"), min(limit, rapid.Float64Range(0, 10).Draw(t, "announced")))
			} else {
				b.add(partner, rapid.Float64Range(least, most).Draw(t, "shown"), max(limit, least))
			}
			if got := b.limit(own, 0); got > boundTrust*most {
				t.Fatalf("the bound is %g, at most %g", got, boundTrust*most)
			}
		}
	})
}

func TestAbsurd(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		distance float64
		norm     float32
		want     bool
	}{
		{0, 0, false},
		{implausibleRatio, 0, false},
		{1.001 * implausibleRatio, 0, true},
		{1.001 * implausibleRatio, 1, false},
		{2.001 * implausibleRatio, 1, true},
		{2 * math.MaxFloat32, math.MaxFloat32, true},
		{inf, 1, true},
		{math.NaN(), 1, true},
		{1, float32(math.NaN()), false}, // cannot be: the distance would be NaN
	} {
		if got := implausible(c.distance, ofNorm(c.norm)); got != c.want {
			t.Errorf("distance %g from norm %g: absurd is %v", c.distance, c.norm, got)
		}
	}
}

// TestShareIsNeverMoreThanAllowed: rounding to a float32 does not lengthen what is
// left of a difference.
func TestShareIsNeverMoreThanAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := 1 / float64(1+rapid.IntRange(1, 255).Draw(t, "overlap"))
		limit := math.Exp2(rapid.Float64Range(-100, 130).Draw(t, "limit"))
		distance := math.Exp2(rapid.Float64Range(-140, 128).Draw(t, "distance"))
		want := weight * min(1, limit/distance)
		got := float64(coding.RoundedDown(want))
		if got > want || got < want*(1-1e-6)-1e-44 {
			t.Fatalf("weight %g, limit %g, distance %g: a share of %g, want %g", weight, limit, distance, got, want)
		}
	})
	if got := coding.RoundedDown(0.5); got != 0.5 {
		t.Errorf("half became %g", got)
	}
}

// TestAnnouncedBoundIsNoLess: what travels allows the partner what this side allows.
func TestAnnouncedBoundIsNoLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := math.Exp2(rapid.Float64Range(-149, 200).Draw(t, "limit"))
		if got := float64(announced(limit)); got < limit || got == 0 {
			t.Fatalf("a bound of %g travels as %g", limit, got)
		}
	})
}
