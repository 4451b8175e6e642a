package replica_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/tensor"
)

// TestSumIsConservedWhileBothSidesTrain interleaves, in any order, gradient steps on
// both sides with the sending, answering and applying of slices over one or several
// lanes. What both models together gain is what the gradient steps gave: no step is
// lost, and an exchange adds nothing, a partial one included.
func TestSumIsConservedWhileBothSidesTrain(t *testing.T) {
	for _, name := range slices.Concat(codecs, latticed) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkConservation(t, name) })
		})
	}
}

func checkConservation(t *rapid.T, name string) {
	seed := rapid.Uint64().Draw(t, "seed")
	a, p := randomSides(t, seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	want := sum(contents(a.Replica), contents(p.Replica))
	train := func(s *side) {
		before := contents(s.Replica)
		s.Add(smallStep(rng, s.Len()))
		for i, v := range contents(s.Replica) { // what was really added, rounding and frozen ranges included
			want[i] += float64(v) - float64(before[i])
		}
	}
	terms := replica.Terms{
		Plan: coding.Uniform(codec(t, name)), Window: rapid.IntRange(1, 4).Draw(t, "window"),
		Lanes: rapid.IntRange(1, 4).Draw(t, "lanes"), Overlap: rapid.IntRange(1, 3).Draw(t, "overlap"),
		Partial: rapid.Bool().Draw(t, "partial"),
	}
	for range rapid.IntRange(1, 4).Draw(t, "exchanges") {
		terms.Exchange++
		x := begin(t, a, p, terms)
		for !p.responder.Done() {
			l := x.lanes[rapid.IntRange(0, len(x.lanes)-1).Draw(t, "lane")]
			switch rapid.IntRange(0, 6).Draw(t, "turn") {
			case 0:
				train(a)
			case 1:
				train(p)
			case 2, 3:
				l.send()
			case 4:
				l.answer()
			case 5:
				l.apply()
			case 6:
				l.a.Leave()
			}
		}
		x.finish()
	}
	got, size := sum(contents(a.Replica), contents(p.Replica)), 0.0
	for _, v := range want {
		size += v * v
	}
	if off := apart(got, want) / math.Sqrt(size); off > 1e-6 {
		t.Fatalf("the sum moved by %g of itself", off)
	}
}

func smallStep(rng *rand.Rand, n int) tensor.Vector {
	step := make(tensor.Vector, n)
	for i := range step {
		step[i] = (rng.Float32() - 0.5) / 8
	}
	return step
}

// TestExchangeMovesByTheWeight: with no steps in between and no clipping, each side
// moves by 1/(1+overlap) of the difference, so that both end at the mean when neither
// is in another exchange. What is not shared stays as it was, and both sides know how
// far they were apart.
func TestExchangeMovesByTheWeight(t *testing.T) {
	for overlap := range 4 { // 0 counts as 1
		rng := rand.New(rand.NewPCG(3, uint64(overlap)))
		a := newSide(t, smallModel(t, rng, nil), replica.Options{Unclipped: true})
		p := newSide(t, smallModel(t, rng, nil), replica.Options{Unclipped: true})
		beforeA, beforeP := contents(a.Replica), contents(p.Replica)
		begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 4, Overlap: overlap}).finish()
		afterA, afterP := contents(a.Replica), contents(p.Replica)
		weight, squared := 1/float64(1+max(overlap, 1)), 0.0
		for i := range afterA {
			difference := float64(beforeA[i]) - float64(beforeP[i])
			if i >= frozenFrom && i < sharedFrom {
				difference = 0
			}
			squared += difference * difference
			wantA, wantP := float64(beforeA[i])-weight*difference, float64(beforeP[i])+weight*difference
			if math.Abs(float64(afterA[i])-wantA) > 2e-7 || math.Abs(float64(afterP[i])-wantP) > 2e-7 {
				t.Fatalf("overlap %d, value %d: %g and %g from %g and %g", overlap, i, afterA[i], afterP[i], beforeA[i], beforeP[i])
			}
		}
		for _, got := range []float64{a.initiator.Distance(), p.responder.Distance()} {
			if want := math.Sqrt(squared); math.Abs(got-want) > 1e-5 {
				t.Errorf("overlap %d: distance %g, want %g", overlap, got, want)
			}
		}
	}
}

// TestExchangesBeginAtDifferentSlices: exchanges that a slow link never lets finish
// reach every part of the model.
func TestExchangesBeginAtDifferentSlices(t *testing.T) {
	a, p := randomSides(t, 1)
	before := contents(a.Replica)
	for n := range uint64(60) {
		x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: 1, Exchange: n + 1})
		x.lanes[0].send()
		x.lanes[0].answer()
		x.lanes[0].apply()
		a.initiator.End(false)
		p.responder.End(0)
		settle(p, a)
	}
	for i, v := range contents(a.Replica) {
		if shared := i < frozenFrom || i >= sharedFrom; shared == (v == before[i]) {
			t.Errorf("value %d: shared %v, moved %v", i, shared, v != before[i])
		}
	}
}

// TestTermsAreBroughtWithinBounds: numbers that no memory is there for are cut down,
// and missing ones made up.
func TestTermsAreBroughtWithinBounds(t *testing.T) {
	a, p := randomSides(t, 1)
	for _, c := range []struct{ window, lanes, wantWindow, wantLanes int }{
		{0, 0, 1, 1},
		{-5, -5, 1, 1},
		{1000, 1, replica.MaxWindow, 1},
		{1000, 1000, replica.MaxWindow / replica.MaxLanes, replica.MaxLanes},
		{16, 4, 16, 4},
		{32, 5, 24, 5},
	} {
		x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, "raw")), Window: c.window, Lanes: c.lanes})
		if got := p.responder.Window(); got != c.wantWindow {
			t.Errorf("window %d with %d lanes became %d, want %d", c.window, c.lanes, got, c.wantWindow)
		}
		if got, theirs := p.responder.Lanes(), a.initiator.Lanes(); got != c.wantLanes || theirs != c.wantLanes {
			t.Errorf("%d lanes became %d and %d, want %d", c.lanes, got, theirs, c.wantLanes)
		}
		x.finish()
	}
}
