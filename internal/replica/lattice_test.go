package replica_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// blocky are two peers whose models have 3 slices of 4 blocks, the last one short, and
// are about apart from each other. They believe each other whatever the distance.
func blocky(t tester, apart float32) (a, p *side) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 0))
	const values = 3*4*coding.BlockLen - 100
	make1 := func() *tensor.Params {
		layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{values}})
		if err != nil {
			t.Fatal(err)
		}
		return tensor.NewParams(layout)
	}
	first, second := make1(), make1()
	for i := range first.Vector() {
		x := float32(rng.NormFloat64())
		first.Vector()[i], second.Vector()[i] = x, x+apart*(2*rng.Float32()-1)
	}
	options := replica.Options{SliceLen: 4 * coding.BlockLen, Unclipped: true}
	return newSide(t, first, options), newSide(t, second, options)
}

// between is the distance of two models.
func between(a, p *side) float64 {
	x, y := contents(a.Replica), contents(p.Replica)
	return math.Sqrt(tensor.SquaredDistance(x, y))
}

// carry carries one exchange through and returns the numbers of the slices of A's
// frames, in order.
func carry(t tester, a, p *side, name string, exchange uint64) (units []uint32) {
	t.Helper()
	x := begin(t, a, p, replica.Terms{Plan: coding.Uniform(codec(t, name)), Window: 2, Exchange: exchange})
	l := x.lanes[0]
	for !a.initiator.Done() || !l.last {
		for l.send() {
			if h := headerIn(l.toP.Bytes()[l.toP.Len()-len(l.frame):]); !l.last {
				units = append(units, h.Slice)
			}
		}
		l.answer()
		l.apply()
	}
	x.finish()
	return units
}

// step moves one value of A's model.
func step(s *side, value int, by float32) {
	delta := make(tensor.Vector, s.Len())
	delta[value] = by
	s.Add(delta)
}

// Blocks that are farther apart than both sides think come again, wider and then as
// halves, and no others do. Whatever happens the sum is kept, and what came closes most
// of the distance.
func TestBlocksThatFailComeAgain(t *testing.T) {
	const apart = 1e-3
	for _, c := range []struct {
		name string
		move float32 // of a value of slice 1
		want []uint32
	}{
		{"near enough", apart, []uint32{0, 1, 2}},
		{"wider", 20 * apart, []uint32{0, 1, 1 + 3, 2}},
		{"as halves", 1000 * apart, []uint32{0, 1, 1 + 3, 1 + 6, 2}},
	} {
		for _, codecName := range latticed {
			t.Run(c.name+", "+codecName, func(t *testing.T) {
				a, p := blocky(t, apart)
				carry(t, a, p, codecName, number) // nobody knows a range before that
				a, p = again(t, a, p, apart)
				step(a, 4*coding.BlockLen+700, c.move)
				before, was := sum(contents(a.Replica), contents(p.Replica)), between(a, p)
				units := carry(t, a, p, codecName, number)
				slices.Sort(units)
				want := slices.Sorted(slices.Values(c.want))
				if !slices.Equal(units, want) {
					t.Errorf("slices %v were sent, want %v", units, want)
				}
				if off := apartFrom(before, a, p); off > 1e-5 {
					t.Errorf("the sum is off by %g", off)
				}
				most := 0.7 * was
				if codecName == "lattice4+1" {
					most = was // the mean of a block says little of one value that is far off
				}
				if is := between(a, p); is > most {
					t.Errorf("the distance was %g and is %g, at most %g", was, is, most)
				}
			})
		}
	}
}

// again moves both models apart by about as much as before they met.
func again(t tester, a, p *side, apart float32) (*side, *side) {
	t.Helper()
	rng := rand.New(rand.NewPCG(12, 0))
	delta := make(tensor.Vector, a.Len())
	for i := range delta {
		delta[i] = apart * (2*rng.Float32() - 1)
	}
	a.Add(delta)
	return a, p
}

func apartFrom(before []float64, a, p *side) float64 {
	return apart(before, sum(contents(a.Replica), contents(p.Replica)))
}

// With each exchange the models come closer, as fast as ranges follow them: by a fifth.
// There is no floor but float32's.
func TestLatticesContract(t *testing.T) {
	for name, most := range map[string]float64{"lattice8+8": 1e-4, "lattice6+4": 1e-4, "lattice4+1": 1e-2} {
		a, p := blocky(t, 1e-2)
		was := between(a, p)
		for i := range 50 {
			carry(t, a, p, name, uint64(i+1))
		}
		if is := between(a, p); is > most*was {
			t.Errorf("%s: after 50 exchanges %g of the distance %g is left, at most %g", name, is/was, was, most)
		}
	}
}

// What was not asked for is refused before anything changes.
func TestBlocksNotAskedForAreRefused(t *testing.T) {
	lattice := codec(t, "lattice6+4")
	exchange := replica.Terms{Plan: coding.Uniform(lattice), Window: 4, Exchange: number}
	x := contents(mustSide(blocky(t, 1e-3)).Replica)[:4*coding.BlockLen]
	ranges := []float32{1, 1, 1, 1}
	frame := func(which coding.Set, coded coding.Set, width coding.Width) []byte {
		code := make([]byte, lattice.Lattice.MaxSize(len(x)))
		code = code[:lattice.Lattice.Encode(code, x, ranges, coded, width)]
		payload := wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: infinity, Codec: uint8(lattice.ID)})
		return append(append(payload, which...), code...)
	}
	for _, c := range []struct {
		name    string
		slice   uint32
		payload []byte
		want    error
	}{
		{"again before it came", 3, frame(coding.Set{1}, coding.Set{1}, coding.Wide), replica.ErrOrder},
		{"again though nothing failed", 3 + 1, frame(coding.Set{1}, coding.Set{1}, coding.Wide), replica.ErrBlocks},
		{"none again", 3 + 1, frame(coding.Set{0}, coding.Set{}, coding.Wide), replica.ErrBlocks},
		{"blocks beyond the slice", 3 + 1, frame(coding.Set{1 << 5}, coding.Set{1}, coding.Wide), replica.ErrBlocks},
		{"no set", 3 + 1, frame(nil, coding.Set{}, coding.Wide), coding.ErrSize},
		{"beyond the last attempt", 9, frame(nil, nil, coding.Normal), replica.ErrOrder},
		{"halves where a range is known", 2, frame(nil, nil, coding.Halves), coding.ErrHalf},
		{"a codec that was not agreed", 2, append(wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: 1, Codec: uint8(coding.BF16)}), make([]byte, 2*len(x))...), replica.ErrCodec},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, p := blocky(t, 1e-3)
			carry(t, a, p, "lattice6+4", 1)
			l := begin(t, a, p, exchange).lanes[0]
			for _, slice := range []uint32{1} {
				if _, err := l.p.Code(wire.Header{Type: wire.TypeCode, Exchange: number, Slice: slice}, frame(nil, nil, coding.Normal)); err != nil {
					t.Fatal(err)
				}
			}
			before := contents(p.Replica)
			_, err := l.p.Code(wire.Header{Type: wire.TypeCode, Exchange: number, Slice: c.slice}, c.payload)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if !sameBits(before, contents(p.Replica)) {
				t.Error("the model has changed")
			}
		})
	}
}

// What failed is asked for once: when it has come, it may not come again, or a partner would move a model twice in an exchange.
func TestBlocksThatHaveComeAreNotAskedFor(t *testing.T) {
	a, p := blocky(t, 1e-3)
	carry(t, a, p, "lattice6+4", 1)
	lattice := codec(t, "lattice6+4")
	l := begin(t, a, p, replica.Terms{Plan: coding.Uniform(lattice), Window: 4, Exchange: number}).lanes[0]
	x := contents(p.Replica)[:4*coding.BlockLen]
	x[0] += 0.02 // farther than the range of its block
	code := func(attempt uint32, which coding.Set, width coding.Width) error {
		code := make([]byte, lattice.Lattice.MaxSize(len(x)))
		code = code[:lattice.Lattice.Encode(code, x, []float32{1e-3, 1e-3, 1e-3, 1e-3}, which, width)]
		payload := append(wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: infinity, Codec: uint8(lattice.ID)}), which...)
		_, err := l.p.Code(wire.Header{Type: wire.TypeCode, Exchange: number, Slice: 3 * attempt}, append(payload, code...))
		return err
	}
	if err := errors.Join(code(0, nil, coding.Normal), code(1, coding.Set{1}, coding.Wide)); err != nil {
		t.Fatal(err)
	}
	if err := code(2, coding.Set{1}, coding.Halves); !errors.Is(err, replica.ErrBlocks) {
		t.Errorf("a block that has come comes again: %v", err)
	}
}

func mustSide(a, _ *side) *side { return a }

// Ranges that do not follow are refused; lanes wait for all of them.
func TestRangesOutOfOrder(t *testing.T) {
	terms := replica.Terms{Plan: coding.Uniform(codec(t, "lattice6+4")), Window: 2, Exchange: number}
	for _, c := range []struct {
		name  string
		slice uint32
		codes int
		want  error
	}{
		{"a slice too far", 1, 4, replica.ErrOrder},
		{"nothing", 0, 0, replica.ErrOrder},
		{"half a slice", 0, 3, coding.ErrSize},
		{"too many", 0, 13, coding.ErrSize},
		{"all", 0, 12, nil},
	} {
		a, _ := blocky(t, 1e-3)
		a.initiator.Begin(terms)
		err := a.initiator.Ranges(wire.Header{Type: wire.TypeRanges, Exchange: number, Slice: c.slice}, make([]byte, c.codes))
		if !errors.Is(err, c.want) || c.want == nil && !a.initiator.Ranged() {
			t.Errorf("%s: error %v, ranged %v", c.name, err, a.initiator.Ranged())
		}
	}
}
