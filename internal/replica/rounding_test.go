package replica_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/tensor"
)

// The transfers of a round: a worker's gradient to a server, or a sum that two members make of theirs
// and that the second passes on.
var rounds = map[string]func(t *testing.T, a, b *averager, codec string, exchange uint64){
	"to a server": func(t *testing.T, a, b *averager, codec string, exchange uint64) {
		b.Clear(0, 1)
		a.send(t, b, terms(t, codec, exchange, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Add: true, Parts: 1}), whole)
	},
	"as a sum": func(t *testing.T, a, b *averager, codec string, exchange uint64) {
		for _, m := range []*averager{a, b} {
			if err := m.Load(0, 1, false, false); err != nil {
				t.Fatal(err)
			}
		}
		a.send(t, b, terms(t, codec, exchange, collective.Transfer{From: collective.Sum, Into: collective.Sum, Add: true, Parts: 1}), whole)
		b.send(t, a, terms(t, codec, exchange, collective.Transfer{From: collective.Sum, Into: collective.Sum, Parts: 1}), whole)
	},
}

// TestWhatCodesLoseComesLater: the sum of what all rounds have brought is that of the gradients up to
// what one code rounds away, however many rounds there are and although one value is far below what
// its code tells apart.
func TestWhatCodesLoseComesLater(t *testing.T) {
	const n, of = 200, 64
	for name, round := range rounds {
		for _, codec := range []string{"int8", "bf16"} {
			t.Run(fmt.Sprint(name, ", ", codec), func(t *testing.T) {
				a, b := largeAverager(t, of), largeAverager(t, of)
				gradient, brought := make(tensor.Vector, of), make([]float64, of)
				for i := range gradient {
					gradient[i] = float32(1e-4 * float64(1+i))
				}
				gradient[of-1] = 1
				own := make(tensor.Vector, of) // of b, which is heard by nobody else
				for k := range uint64(n) {
					for m, g := range map[*averager]tensor.Vector{a: gradient, b: own} {
						if err := m.PutRange(g, 0, len(g), 3); err != nil {
							t.Fatal(err)
						}
					}
					round(t, a, b, codec, k+1)
					mean := make(tensor.Vector, of)
					b.Drain(mean, 0, 1, 3)
					for i, v := range mean {
						brought[i] += float64(v)
					}
				}
				for i, got := range brought {
					if off := math.Abs(got - n*float64(gradient[i])); off > 2.0/127 {
						t.Errorf("value %d: %d rounds have brought %g, want %g", i, n, got, n*gradient[i])
					}
				}
			})
		}
	}
}

// TestAnAttemptThatBreaksOffLosesNothing: what is carried is what the codes of the attempt that counts
// have lost.
func TestAnAttemptThatBreaksOffLosesNothing(t *testing.T) {
	const of = 64
	a, b := largeAverager(t, of), largeAverager(t, of)
	gradient := make(tensor.Vector, of)
	gradient[0], gradient[1] = 1, 1e-3
	for name, round := range rounds {
		for attempts := range 3 {
			if err := a.PutRange(gradient, 0, len(gradient), 3); err != nil {
				t.Fatal(err)
			}
			if err := b.PutRange(make(tensor.Vector, of), 0, of, 3); err != nil {
				t.Fatal(err)
			}
			for range attempts + 1 {
				round(t, a, b, "int8", 1)
			}
			if err := a.PutRange(make(tensor.Vector, of), 0, of, 3); err != nil { // takes what is carried
				t.Fatal(err)
			}
			a.send(t, b, terms(t, "raw", 2, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Parts: 1}), whole)
			carried, _ := b.peek(t)
			if got, want := float64(carried[1])/3, 1e-3; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s, after %d attempts %g is carried, want %g", name, attempts+1, got, want)
			}
		}
	}
}

// TestAPartThatBeginsAnewForgetsOnlyItsOwn: what codes of another part of the same slice have lost stays.
func TestAPartThatBeginsAnewForgetsOnlyItsOwn(t *testing.T) {
	const of = 128 // two pieces of one slice
	a, b := largeAverager(t, of), largeAverager(t, of)
	gradient := make(tensor.Vector, of)
	for _, i := range []int{0, of - 1} {
		gradient[i] = 1
	}
	gradient[1], gradient[of-2] = 1e-3, 1e-3
	if err := a.PutRange(gradient, 0, len(gradient), 1); err != nil {
		t.Fatal(err)
	}
	rounds["to a server"](t, a, b, "int8", 1)
	if err := a.Load(1, 2, false, false); err != nil {
		t.Fatal(err)
	}
	if err := a.PutRange(make(tensor.Vector, of), 0, of, 1); err != nil {
		t.Fatal(err)
	}
	b.Clear(0, 1)
	a.send(t, b, terms(t, "raw", 2, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Parts: 1}), whole)
	if carried, _ := b.peek(t); carried[1] == 0 || carried[of-2] != 0 {
		t.Errorf("%g of the first part is carried, and %g of the second, which began anew", carried[1], carried[of-2])
	}
}

// TestAnotherModelForgetsWhatCodesHaveLost of gradients at the one before.
func TestAnotherModelForgetsWhatCodesHaveLost(t *testing.T) {
	const of = 64
	a, b := largeAverager(t, of), largeAverager(t, of)
	gradient := make(tensor.Vector, of)
	gradient[0], gradient[1] = 1, 1e-3
	if err := a.PutRange(gradient, 0, len(gradient), 1); err != nil {
		t.Fatal(err)
	}
	rounds["to a server"](t, a, b, "int8", 1)
	if err := a.Replace(make(tensor.Vector, of)); err != nil {
		t.Fatal(err)
	}
	if err := a.PutRange(make(tensor.Vector, of), 0, of, 1); err != nil {
		t.Fatal(err)
	}
	a.send(t, b, terms(t, "raw", 2, collective.Transfer{From: collective.Gradient, Into: collective.Sum, Parts: 1}), whole)
	if carried, _ := b.peek(t); tensor.MaxAbs(carried) != 0 {
		t.Errorf("%v is carried", carried)
	}
}
