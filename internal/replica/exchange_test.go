package replica_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/quant"
	"github.com/seed-97356399/murmuration/tensor"
)

const sliceLen = 8

// tester is what the helpers need of a test, of package testing or rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newReplica(t tester, rng *rand.Rand) *replica.Replica {
	t.Helper()
	layout, err := tensor.NewLayout(
		tensor.Spec{Name: "w", Shape: []int{5, 7}},
		tensor.Spec{Name: "fixed", Shape: []int{3}, Sharing: tensor.Frozen},
		tensor.Spec{Name: "own", Shape: []int{4}, Sharing: tensor.Local},
		tensor.Spec{Name: "v", Shape: []int{11}},
		tensor.Spec{Name: "b", Shape: []int{2}, Kind: tensor.Bias},
	)
	if err != nil {
		t.Fatal(err)
	}
	params := tensor.NewParams(layout)
	for i := range params.Vector() {
		params.Vector()[i] = rng.Float32()*2 - 1
	}
	r, err := replica.New(params, sliceLen)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contents(r *replica.Replica) tensor.Vector {
	v := make(tensor.Vector, r.Len())
	r.Snapshot(v)
	return v
}

// pair is an exchange between two replicas over two pipes of bytes, of which each
// end may be served at any moment: what a network does, without one.
type pair struct {
	t         tester
	a, p      *replica.Replica
	active    *replica.Initiator
	passive   *replica.Responder
	toP, toA  bytes.Buffer
	atP, atA  *wire.Reader
	reply     []byte
	codeFrame []byte
}

func newPair(t tester, a, p *replica.Replica, codec quant.Codec, window int) *pair {
	x := &pair{t: t, a: a, p: p, active: replica.NewInitiator(a), passive: replica.NewResponder(p)}
	x.atP, x.atA = wire.NewReader(&x.toP, 0), wire.NewReader(&x.toA, 0)
	x.begin(1, codec, window)
	return x
}

func (x *pair) begin(id uint64, codec quant.Codec, window int) {
	x.active.Begin(id, codec, window)
	x.passive.Begin(id, codec, window)
}

// send lets A send a slice if its window is open, or its last acknowledgement.
func (x *pair) send() bool {
	frame, ok, err := x.active.Code(x.codeFrame)
	if err != nil {
		x.t.Fatal(err)
	}
	x.codeFrame = frame
	if ok {
		x.toP.Write(frame)
	}
	return ok
}

// answer lets P take one frame.
func (x *pair) answer() bool {
	if x.toP.Len() == 0 {
		return false
	}
	header, payload, err := x.atP.Next()
	if err != nil {
		x.t.Fatal(err)
	}
	if header.Type == wire.TypeAck {
		if err := x.passive.Ack(header); err != nil {
			x.t.Fatal(err)
		}
		return true
	}
	x.reply, err = x.passive.Code(header, payload, x.reply)
	if err != nil {
		x.t.Fatal(err)
	}
	x.toA.Write(x.reply)
	return true
}

// apply lets A take one answer, and acknowledge if it was the last.
func (x *pair) apply() bool {
	if x.toA.Len() == 0 {
		return false
	}
	header, payload, err := x.atA.Next()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.active.Diff(header, payload); err != nil {
		x.t.Fatal(err)
	}
	if x.active.Done() {
		frame, err := x.active.Ack(nil)
		if err != nil {
			x.t.Fatal(err)
		}
		x.toP.Write(frame)
	}
	return true
}

func (x *pair) finish() {
	for !x.passive.Done() {
		for x.send() {
		}
		x.answer()
		x.apply()
	}
}

// sum is the sum of two models in float64, ranges that are not shared aside.
func sum(a, p tensor.Vector) []float64 {
	s := make([]float64, 0, len(a))
	for i := range a {
		s = append(s, float64(a[i])+float64(p[i]))
	}
	return s
}

// TestSumIsConservedWhileBothSidesTrain interleaves, in any order, gradient steps
// on both sides with the sending, answering and applying of slices, over the real
// frames and replicas. What both models together gain is exactly what the gradient
// steps gave: no step is lost, and an exchange adds nothing.
func TestSumIsConservedWhileBothSidesTrain(t *testing.T) {
	for _, name := range []string{"raw", "bf16"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkConservation(t, name) })
		})
	}
}

func checkConservation(t *rapid.T, codecName string) {
	codec, err := quant.ByName(codecName)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	a, p := newReplica(t, rng), newReplica(t, rng)
	want := sum(contents(a), contents(p))
	x := newPair(t, a, p, codec, rapid.IntRange(1, 4).Draw(t, "window"))
	step := func(r *replica.Replica) {
		delta := make(tensor.Vector, r.Len())
		for i := range delta {
			delta[i] = (rng.Float32() - 0.5) / 8
		}
		before := contents(r)
		r.Add(delta)
		after := contents(r)
		for i := range delta { // what was really added, rounding and frozen ranges included
			want[i] += float64(after[i]) - float64(before[i])
		}
	}
	exchanges := rapid.IntRange(1, 4).Draw(t, "exchanges")
	for n := range exchanges {
		x.begin(uint64(n+1), codec, 3)
		for !x.passive.Done() {
			switch rapid.IntRange(0, 5).Draw(t, "turn") {
			case 0:
				step(a)
			case 1:
				step(p)
			case 2, 3:
				x.send()
			case 4:
				x.answer()
			case 5:
				x.apply()
			}
		}
	}
	got := sum(contents(a), contents(p))
	var off, size float64
	for i := range got {
		off += (got[i] - want[i]) * (got[i] - want[i])
		size += want[i] * want[i]
	}
	if ratio := math.Sqrt(off / size); ratio > 1e-6 {
		t.Fatalf("the sum moved by %g of itself", ratio)
	}
}

// TestExchangeMeets: with no steps in between, both end at the mean, exactly with
// raw, and what is not shared stays as it was.
func TestExchangeMeets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	a, p := newReplica(t, rng), newReplica(t, rng)
	before := [2]tensor.Vector{contents(a), contents(p)}
	codec, _ := quant.ByName("raw")
	x := newPair(t, a, p, codec, 4)
	x.finish()
	var squared float64
	for i, got := range contents(a) {
		first, second := before[0][i], before[1][i]
		if i >= 35 && i < 42 { // frozen and local
			if got != first || contents(p)[i] != second {
				t.Fatalf("value %d is not shared and changed", i)
			}
			continue
		}
		squared += float64(first-second) * float64(first-second)
		mean := (float64(first) + float64(second)) / 2
		if math.Abs(float64(got)-mean) > 1e-7 || math.Abs(float64(contents(p)[i])-mean) > 1e-7 {
			t.Fatalf("value %d: %g and %g from %g and %g", i, got, contents(p)[i], first, second)
		}
	}
	want := math.Sqrt(squared)
	if math.Abs(x.active.Distance()-want) > 1e-5 || math.Abs(x.active.Distance()-x.passive.Distance()) > 1e-5 {
		t.Errorf("distances %g and %g, want %g", x.active.Distance(), x.passive.Distance(), want)
	}
}

// TestCutLeavesWholeSlices: a stream cut after any number of steps of the protocol
// leaves slices that both applied, slices that neither did, and in-doubt ones that
// only A applied, as many as P counts at most.
func TestCutLeavesWholeSlices(t *testing.T) {
	codec, _ := quant.ByName("raw")
	for cut := range 40 {
		rng := rand.New(rand.NewPCG(uint64(cut), 4))
		a, p := newReplica(t, rng), newReplica(t, rng)
		first, second := contents(a), contents(p)
		x := newPair(t, a, p, codec, 3)
		for turn := range cut {
			switch turn % 4 {
			case 0, 1:
				x.send()
			case 2:
				x.answer()
			case 3:
				x.apply()
			}
		}
		onlyA, onlyP := 0, 0
		nowA, nowP := contents(a), contents(p)
		for i := range nowA {
			movedA, movedP := nowA[i] != first[i], nowP[i] != second[i]
			onlyA += b2i(movedA && !movedP)
			onlyP += b2i(movedP && !movedA)
		}
		if onlyP > 0 {
			t.Fatalf("cut %d: P applied %d values that A did not", cut, onlyP)
		}
		if bound := x.passive.InDoubt() * sliceLen; onlyA > bound {
			t.Fatalf("cut %d: %d values in doubt, P counts %d", cut, onlyA, bound)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestRulesAreKept(t *testing.T) {
	codec, _ := quant.ByName("raw")
	rng := rand.New(rand.NewPCG(3, 4))
	a, p := newReplica(t, rng), newReplica(t, rng)
	frame := func(x *pair, slice, ack uint32, exchange uint64, values tensor.Vector) (wire.Header, []byte) {
		payload := wire.AppendCodeInfo(nil, wire.CodeInfo{Bound: float32(math.Inf(1))})
		return wire.Header{Type: wire.TypeCode, Exchange: exchange, Slice: slice, Ack: ack}, tensor.AppendBytes(payload, values)
	}
	good := make(tensor.Vector, sliceLen)
	for _, c := range []struct {
		name       string
		slice, ack uint32
		exchange   uint64
		values     tensor.Vector
		want       error
	}{
		{"a slice ahead", 1, 0, 1, good, replica.ErrOrder},
		{"another exchange", 0, 0, 2, good, replica.ErrOrder},
		{"an acknowledgement of nothing", 0, 1, 1, good, replica.ErrOrder},
		{"an absurd acknowledgement", 0, math.MaxUint32, 1, good, replica.ErrOrder},
		{"a short slice", 0, 0, 1, good[:3], quant.ErrSize},
		{"NaN", 0, 0, 1, append(good[:7:7], float32(math.NaN())), quant.ErrNotFinite},
		{"an overflowing distance", 0, 0, 1, append(good[:7:7], math.MaxFloat32), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := contents(p)
			x := newPair(t, a, p, codec, 2)
			header, payload := frame(x, c.slice, c.ack, c.exchange, c.values)
			_, err := x.passive.Code(header, payload, nil)
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			for i, v := range contents(p) {
				if v != before[i] {
					t.Fatalf("value %d changed", i)
				}
			}
		})
	}
	t.Run("beyond the window", func(t *testing.T) {
		x := newPair(t, a, p, codec, 2)
		for i := range uint32(3) {
			header, payload := frame(x, i, 0, 1, good)
			_, err := x.passive.Code(header, payload, nil)
			if want := i == 2; errors.Is(err, replica.ErrWindow) != want {
				t.Errorf("slice %d: %v", i, err)
			}
		}
	})
	t.Run("a difference that was not asked for", func(t *testing.T) {
		x := newPair(t, a, p, codec, 2)
		payload := tensor.AppendBytes(wire.AppendDiffInfo(nil, wire.DiffInfo{}), good)
		if err := x.active.Diff(wire.Header{Type: wire.TypeDiff, Exchange: 1}, payload); !errors.Is(err, replica.ErrOrder) {
			t.Errorf("error %v", err)
		}
	})
}

// BenchmarkExchange moves a model of 200,000 values between two replicas in
// memory; it allocates nothing once warm.
func BenchmarkExchange(b *testing.B) {
	layout, err := tensor.NewLayout(tensor.Spec{Name: "w", Shape: []int{200_000}})
	if err != nil {
		b.Fatal(err)
	}
	var replicas [2]*replica.Replica
	for i := range replicas {
		if replicas[i], err = replica.New(tensor.NewParams(layout), 0); err != nil {
			b.Fatal(err)
		}
	}
	codec, _ := quant.ByName("raw")
	x := newPair(b, replicas[0], replicas[1], codec, 4)
	x.finish()
	b.SetBytes(200_000 * 4)
	b.ReportAllocs()
	for b.Loop() {
		x.begin(1, codec, 4)
		x.finish()
	}
}
