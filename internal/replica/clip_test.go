package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// oneSlice is a peer whose model is one slice of n equal values.
func oneSlice(t tester, n int, value float32, options replica.Options) *side {
	t.Helper()
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = value
	}
	return newSide(t, params, options)
}

// floor is the share of its own norm by which a slice may always differ.
const floor = 0.02

// announcedBy is the bound in the CODE that a peer sends now. No answer comes.
func announcedBy(t tester, a *side) float64 {
	t.Helper()
	a.initiator.Begin(replica.Terms{Plan: coding.Uniform(codec(t, "raw"))})
	defer a.initiator.End(false)
	frame, ok, err := a.initiator.Lane(0).Code(nil)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	info, _, err := wire.SplitCode(frame[wire.HeaderSize:])
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Bound)
}

// moved is how far an exchange moved the two sides.
func moved(t tester, a, p *side, overlap int) (byA, byP float64) {
	t.Helper()
	beforeA, beforeP := contents(a.Replica), contents(p.Replica)
	begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2, Overlap: overlap}).finish()
	return math.Sqrt(tensor.SquaredDistance(beforeA, contents(a.Replica))),
		math.Sqrt(tensor.SquaredDistance(beforeP, contents(p.Replica)))
}

// TestClippingTakesTheSmallerBound: whichever side has the smaller bound, both move by
// w·min(D, τ_A, τ_P).
func TestClippingTakesTheSmallerBound(t *testing.T) {
	for _, c := range []struct{ a, p float32 }{
		{100, 110}, // τ = 2 and 2.2
		{110, 100},
		{100, 101}, // nearer than either bound
		{100, -100},
		{-1, 100},
		{100, 100},
	} {
		for overlap := 1; overlap <= 3; overlap++ {
			a, p := oneSlice(t, 4, c.a/2, replica.Options{}), oneSlice(t, 4, c.p/2, replica.Options{})
			if got, want := announcedBy(t, a), floor*math.Abs(float64(c.a)); math.Abs(got-want) > 1e-6*want || got < want {
				t.Errorf("%v: A announces %g, want %g", c, got, want)
			}
			distance := math.Abs(float64(c.a) - float64(c.p))
			want := min(distance, floor*math.Abs(float64(c.a)), floor*math.Abs(float64(c.p))) / float64(1+overlap)
			byA, byP := moved(t, a, p, overlap)
			if math.Abs(byA-want) > 1e-5*want+1e-5 || math.Abs(byP-want) > 1e-5*want+1e-5 {
				t.Errorf("%v with an overlap of %d: moved by %g and %g, want %g", c, overlap, byA, byP, want)
			}
		}
	}
}

// TestDistancesEnterBothWindows: after an exchange the passive side's bound is the distance, and
// no more than 2/0.75 times the smaller bound of the two. The active side's is as much where it was
// shown that its own is less, and else the own, which is more than what was shown.
func TestDistancesEnterBothWindows(t *testing.T) {
	for _, c := range []struct {
		a, p         float32
		wantA, wantP float64
	}{
		{100, 101, 2.01, 2.01}, // 2 % of what both are then
		{100, 103, 2 * 8 / 3.0, 3},
		{100, 120, 2 * 8 / 3.0, 2 * 8 / 3.0},
		{120, 100, 0.02 * 119, 2 * 8 / 3.0},
	} {
		a, p := oneSlice(t, 4, c.a/2, replica.Options{}), oneSlice(t, 4, c.p/2, replica.Options{})
		moved(t, a, p, 1)
		if x, y := announcedBy(t, a), announcedBy(t, p); math.Abs(x-c.wantA) > 1e-5 || math.Abs(y-c.wantP) > 1e-5 {
			t.Errorf("%v: the bounds are %g and %g", c, x, y)
		}
	}
}

// TestZeroStart: a model of zeros can take up another one, though not all at once:
// the first partner may be a liar.
func TestZeroStart(t *testing.T) {
	a, p := oneSlice(t, 4, 0, replica.Options{}), oneSlice(t, 4, 0, replica.Options{})
	for range 20 { // equal, and zero, for longer than anybody remembers
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	}
	a.Add(tensor.Vector{50, 50, 50, 50})
	for n := 0; ; n++ {
		byA, byP := moved(t, a, p, 1)
		if n == 0 && (byA > 1 || byP == 0) {
			t.Fatalf("the first meeting moves by %g and %g", byA, byP)
		}
		x, y := contents(a.Replica), contents(p.Replica)
		if tensor.SquaredDistance(x, y) < 1 {
			return
		}
		if n == 100 {
			t.Fatalf("after %d exchanges the models are %v and %v", n, x, y)
		}
	}
}

// TestGrowthAfterEquality: peers that have agreed for long and then learn different
// things go on meeting.
func TestGrowthAfterEquality(t *testing.T) {
	a, p := oneSlice(t, 4, 10, replica.Options{}), oneSlice(t, 4, 10, replica.Options{})
	for range 20 {
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	}
	a.Add(tensor.Vector{10, 10, 10, 10})
	n := 0
	for ; tensor.SquaredDistance(contents(a.Replica), contents(p.Replica)) > 1; n++ {
		if n == 60 {
			t.Fatalf("after %d exchanges: %v and %v", n, contents(a.Replica), contents(p.Replica))
		}
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	}
	t.Logf("met after %d exchanges", n)
}

// TestOwnDriftIsNotClipped: models that have long been equal and then move apart, each
// by itself, meet again at once.
func TestOwnDriftIsNotClipped(t *testing.T) {
	a, p := oneSlice(t, 4, 10, replica.Options{}), oneSlice(t, 4, 10, replica.Options{})
	for range 20 {
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	}
	for range 10 {
		a.Add(tensor.Vector{1, 1, 1, 1})
		p.Add(tensor.Vector{-1, -1, -1, -1})
	}
	if byA, byP := moved(t, a, p, 1); byA != 20 || byP != 20 {
		t.Errorf("moved by %g and %g, want 20", byA, byP)
	}
}

// TestUnclippedBelievesAnyModel: the switch takes the bound away on both sides.
func TestUnclippedBelievesAnyModel(t *testing.T) {
	a := oneSlice(t, 4, 1, replica.Options{Unclipped: true})
	p := oneSlice(t, 4, 1000, replica.Options{Unclipped: true})
	if bound := announcedBy(t, a); !math.IsInf(bound, 1) {
		t.Errorf("A announces a bound of %g", bound)
	}
	if byA, byP := moved(t, a, p, 1); byA != 999 || byP != 999 {
		t.Errorf("moved by %g and %g, want 999", byA, byP)
	}
}

// TestErrBound: a difference beyond what A has announced is refused and changes
// nothing; one within it, a codec's slack included, is applied.
func TestErrBound(t *testing.T) {
	const length = 8
	for _, name := range codecs {
		for _, c := range []struct {
			share float64 // of w·τ_A
			ok    bool
		}{{0, true}, {0.5, true}, {0.999, true}, {1.004, true}, {1.02, false}, {2, false}, {1000, false}} {
			a := oneSlice(t, length, 1, replica.Options{})
			x := begin(t, a, oneSlice(t, length, 1, replica.Options{}), replica.Terms{Plan: coding.Uniform(codec(t, name)), Overlap: 3, Exchange: number})
			before := contents(a.Replica)
			x.lanes[0].send()
			value := float32(c.share * floor * 0.25) // τ = 0.02·√8, each of eight values w·τ/√8
			diff := make(tensor.Vector, length)
			for i := range diff {
				diff[i] = value
			}
			err := x.lanes[0].a.Diff(wire.Header{Type: wire.TypeDiff, Exchange: number}, diffOf(t, name, 0, diff))
			if c.ok != (err == nil) || (!c.ok && !errors.Is(err, replica.ErrBound)) {
				t.Errorf("%s, %g of the bound: error %v", name, c.share, err)
			}
			if changed := !sameBits(contents(a.Replica), before); changed != (c.ok && c.share > 0) {
				t.Errorf("%s, %g of the bound: changed is %v", name, c.share, changed)
			}
		}
	}
}

// TestLiarMovesNobodyFar: one that shows another random model each time, as either
// side, moves an honest peer by no more than its bound, and that does not run away
// while honest partners are the majority.
func TestLiarMovesNobodyFar(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const length = 16
	honest := make([]*side, 3)
	for i := range honest {
		honest[i] = oneSlice(t, length, 1, replica.Options{})
	}
	far := 0.0
	for n := range 300 {
		liar := oneSlice(t, length, float32(rng.NormFloat64()*1000), replica.Options{Unclipped: true})
		victim, other := honest[n%3], honest[(n+1)%3]
		before := contents(victim.Replica)
		if n%2 == 0 {
			begin(t, liar, victim, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
		} else { // as the passive side it keeps to the bound, or would be refused
			begin(t, victim, liar, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
		}
		far = max(far, math.Sqrt(tensor.SquaredDistance(before, contents(victim.Replica))))
		begin(t, victim, other, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
		begin(t, other, victim, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	}
	if most := 4 * floor * math.Sqrt(length); far > most {
		t.Errorf("a liar moved an honest peer by %g, at most %g", far, most)
	}
}
