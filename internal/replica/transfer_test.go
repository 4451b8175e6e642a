package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// sharedOf are the values that are exchanged, of the small averagers' model.
func sharedOf(v tensor.Vector) tensor.Vector { return slices.Concat(v[:210], v[217:]) }

// ledgerOfSums is what a sum should be: whole numbers, so that nothing is rounded.
type ledgerOfSums struct{ values, weights []float64 }

// Whatever is loaded, sent, added, replaced and broken off, sums and weights are what
// whole numbers say, each PART counting as a whole or not at all.
func TestSumsAddUpExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const peers = 3
		all, rng := smallAveragers(t, peers), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := all[0].SharedLen()
		var want [peers]ledgerOfSums
		var gradients [peers]tensor.Vector
		var samples [peers]int
		for i := range want {
			want[i] = ledgerOfSums{make([]float64, n), make([]float64, n)}
			samples[i] = 1 + rng.IntN(40)
			gradients[i] = sharedOf(all[i].put(t, rng, samples[i]))
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			a := rapid.IntRange(0, peers-1).Draw(t, "peer")
			add := rapid.Bool().Draw(t, "add")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if err := all[a].Load(0, 1, add, false); err != nil {
					t.Fatal(err)
				}
				want[a].take(gradients[a], samples[a], add, 0, n)
			case 1:
				if rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
					all[a].Clear(0, 1)
					want[a] = ledgerOfSums{make([]float64, n), make([]float64, n)}
				}
			default:
				b := (a + 1 + rapid.IntRange(0, peers-2).Draw(t, "other")) % peers
				parts := rapid.IntRange(1, 9).Draw(t, "parts")
				m := collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: add, Parts: parts, Part: rapid.IntRange(0, parts-1).Draw(t, "part")}
				if rapid.Bool().Draw(t, "gradient") {
					m.From = collective.Gradient
				}
				from, to := movedRange(t, all[a], all[b], m, rapid.SampledFrom([]int{1, 2, whole}).Draw(t, "frames"))
				if m.From == collective.Gradient {
					want[b].take(gradients[a], samples[a], add, from, to)
				} else {
					want[b].join(&want[a], add, from, to)
				}
			}
		}
		for i, a := range all {
			want[i].check(t, a)
		}
	})
}

// movedRange sends so many PARTs and returns the range of shared values that they had.
func movedRange(t tester, a, b *averager, m collective.Transfer, frames int) (from, to int) {
	if err := a.sender.Begin(terms(t, "raw", 5, m)); err != nil {
		t.Fatal(err)
	}
	if err := b.receiver.Begin(terms(t, "raw", 5, m)); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		frame, ok, err := a.sender.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		h := headerIn(frame)
		if err := b.receiver.Part(h, frame[wire.HeaderSize:]); err != nil {
			t.Fatal(err)
		}
		info, _, _ := wire.SplitPart(frame[wire.HeaderSize:])
		if i == 0 {
			from = pieceValues(0, int(h.Slice))
		}
		to = pieceValues(0, int(h.Slice)+int(info.Pieces))
	}
	return from, to
}

// take adds a gradient, or replaces the sum by it, in a range.
func (l *ledgerOfSums) take(gradient tensor.Vector, samples int, add bool, from, to int) {
	for i := from; i < to; i++ {
		if !add {
			l.values[i], l.weights[i] = 0, 0
		}
		l.values[i] += float64(gradient[i]) * float64(samples)
		l.weights[i] += float64(samples)
	}
}

// join adds another sum, or replaces this one by it, in a range.
func (l *ledgerOfSums) join(o *ledgerOfSums, add bool, from, to int) {
	for i := from; i < to; i++ {
		if !add {
			l.values[i], l.weights[i] = 0, 0
		}
		l.values[i] += o.values[i]
		l.weights[i] += o.weights[i]
	}
}

// check compares a sum with what it should be, and then what Drain makes of it.
func (l *ledgerOfSums) check(t tester, a *averager) {
	t.Helper()
	values, weights := a.peek(t)
	if len(values) != len(l.values) {
		t.Fatalf("a sum of %d values, want %d", len(values), len(l.values))
	}
	mean := make(tensor.Vector, a.Len())
	heaviest := a.Drain(mean, 0, 1, 0)
	if heaviest != slices.Max(l.weights) {
		t.Fatalf("the heaviest piece weighs %g, want %g", heaviest, slices.Max(l.weights))
	}
	shared := sharedOf(mean)
	for i, want := range l.values {
		if float64(values[i]) != want || weights[i] != l.weights[i] {
			t.Fatalf("value %d is %g with weight %g, want %g with %g", i, values[i], weights[i], want, l.weights[i])
		}
		if l.weights[i] > 0 {
			want /= l.weights[i]
		}
		if math.Abs(float64(shared[i])-want) > 1e-6*math.Abs(want) {
			t.Fatalf("the mean of value %d is %g, want %g", i, shared[i], want)
		}
	}
	if values, weights := a.peek(t); slices.Max(weights) != 0 || tensor.Norm2(values) != 0 {
		t.Fatal("a sum that was drained is not empty")
	}
}

// A ring of peers passes a sum on, each part from its owner: all end with the same
// bytes, with any codec, and what they pass on does not change it.
func TestPassedOnSumsAreAlike(t *testing.T) {
	const peers, values = 4, 100_000
	for _, name := range oneWay {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				rng := rand.New(rand.NewPCG(seed, 2))
				all := make([]*averager, peers)
				gradient := make(tensor.Vector, values)
				for i := range all {
					all[i] = largeAverager(t, values)
					for j := range gradient {
						gradient[j] = float32(rng.NormFloat64()) * 1e-3
					}
					gradient[0] = float32(math.Copysign(0, -1))
					if err := all[i].PutRange(gradient, 0, len(gradient), 48+float64(i)); err != nil {
						t.Fatal(err)
					}
					if err := all[i].Load(0, 1, false, false); err != nil {
						t.Fatal(err)
					}
				}
				ring(t, all, name)
				var first tensor.Vector
				for i, a := range all {
					mean := make(tensor.Vector, values)
					if w := a.Drain(mean, 0, 1, 0); w != 4*48+6 {
						t.Fatalf("peer %d has a weight of %g", i, w)
					}
					if first == nil {
						first = mean
					}
					if !sameBits(first, mean) {
						t.Fatalf("peer %d has another sum than peer 0", i)
					}
				}
			}
		})
	}
}

// What a codec has decoded it codes the same again, whatever the largest value of a
// block is: of int8, whose step is rounded, a share of all that there are is tried.
func TestCodesOfDecodedValues(t *testing.T) {
	x := tensor.Vector{0, 1, -0.7, 0.123}
	for _, name := range oneWay {
		coder := codec(t, name).Code
		code, again := make([]byte, coder.Size(len(x))), make([]byte, coder.Size(len(x)))
		decoded := make(tensor.Vector, len(x))
		for mantissa := uint32(0); mantissa < 1<<23; mantissa += 13 {
			x[0] = math.Float32frombits(1<<23*127 | mantissa)
			coder.Encode(code, x)
			if err := coder.Decode(decoded, code, nil); err != nil {
				t.Fatal(err)
			}
			coder.Encode(again, decoded)
			if string(code) != string(again) {
				t.Fatalf("%s codes %v as % x, and what that decodes to as % x", name, x, code, again)
			}
		}
	}
}

// ring is an AllReduce: parts travel around once to be added up, and once to be handed
// out.
func ring(t tester, all []*averager, name string) {
	t.Helper()
	n := len(all)
	for _, add := range []bool{true, false} {
		for hop := range n - 1 {
			for part := range n {
				from := (part + hop) % n
				if !add {
					from = (part + n - 1 + hop) % n
				}
				m := collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: add, Part: part, Parts: n}
				all[from].send(t, all[(from+1)%n], terms(t, name, uint64(hop+1), m), whole)
			}
		}
	}
}

// The parts of any number divide the pieces, none left out and none twice, into about
// equal numbers of values.
func TestPartsDivideThePieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := smallAveragers(t, 1)[0]
		if rapid.Bool().Draw(t, "large") {
			a = largeAverager(t, rapid.IntRange(1, 200_000).Draw(t, "values"))
		}
		parts := rapid.IntRange(1, 60).Draw(t, "parts")
		a.put(t, rand.New(rand.NewPCG(1, 1)), 1)
		next, total := 0, 0
		for part := range parts {
			m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Part: part, Parts: parts}
			if err := a.sender.Begin(terms(t, "raw", 1, m)); err != nil {
				t.Fatal(err)
			}
			values := 0
			for {
				frame, ok, err := a.sender.Next(nil)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				info, code, _ := wire.SplitPart(frame[wire.HeaderSize:])
				if int(headerIn(frame).Slice) != next {
					t.Fatalf("part %d goes on with piece %d, want %d", part, headerIn(frame).Slice, next)
				}
				next += int(info.Pieces)
				values += len(code) / tensor.ValueSize
			}
			if fair := a.SharedLen() / parts; values < fair-128 || values > fair+128 {
				t.Fatalf("part %d of %d has %d of %d values", part, parts, values, a.SharedLen())
			}
			total += values
		}
		if total != a.SharedLen() {
			t.Fatalf("the parts have %d of %d values", total, a.SharedLen())
		}
	})
}

// Parameters that are sent replace those of the receiver, but for what is local or
// frozen.
func TestParametersAreReplaced(t *testing.T) {
	all := smallAveragers(t, 2)
	step := make(tensor.Vector, all[0].Len())
	for i := range step {
		step[i] = float32(i)
	}
	all[0].Add(step)
	m := collective.Transfer{From: collective.Parameters, Into: collective.Parameters, Parts: 1}
	all[0].send(t, all[1], terms(t, "raw", 1, m), whole)
	got := contents(all[1].Replica)
	if !sameBits(sharedOf(got), sharedOf(step)) || tensor.Norm2(got[210:217]) != 0 {
		t.Errorf("the parameters are %v", got)
	}
}

// What is local steps with the peer's own gradient, once; what is frozen never.
func TestDrainOfLocalValues(t *testing.T) {
	a := smallAveragers(t, 1)[0]
	gradient := a.put(t, rand.New(rand.NewPCG(1, 1)), 5)
	got := make(tensor.Vector, a.Len())
	for _, times := range []float32{1, 0} {
		a.Drain(got, 0, 1, 0)
		want := make(tensor.Vector, a.Len())
		tensor.Axpy(want[213:217], times, gradient[213:217])
		if !sameBits(got, want) {
			t.Errorf("drained %v, want %v", got, want)
		}
	}
}

func TestGradientsThatAreNone(t *testing.T) {
	a := smallAveragers(t, 1)[0]
	gradient := make(tensor.Vector, a.Len())
	for _, samples := range []float64{0, 0.5, -1, math.NaN(), math.Inf(1)} {
		if a.PutRange(gradient, 0, len(gradient), samples) == nil {
			t.Errorf("a gradient over %g samples was taken", samples)
		}
	}
	gradient[3] = float32(math.NaN())
	if err := a.PutRange(gradient, 0, len(gradient), 1); !errors.Is(err, replica.ErrDiverged) {
		t.Errorf("a gradient of NaN: %v", err)
	}
	m := collective.Transfer{From: collective.Gradient, Into: collective.Sum, Parts: 1}
	if err := a.sender.Begin(terms(t, "raw", 1, m)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.sender.Next(nil); !errors.Is(err, replica.ErrTransfer) {
		t.Errorf("sending a gradient where there is none: %v", err)
	}
}
