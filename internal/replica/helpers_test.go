package replica_test

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// tester is what the helpers need of a test, of package testing or rapid.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// The small model has eight shared slices, of which three are short, and values that
// are frozen or local.
const (
	sliceLen     = 8
	sharedSlices = 8
	frozenFrom   = 35
	localFrom    = 38
	sharedFrom   = 42
)

// codecs are those that every property has to hold for, and latticed those with blocks
// that can fail.
var (
	codecs   = []string{"raw", "bf16", "int8"}
	latticed = []string{"lattice6+4", "lattice4+1"}
)

func codec(t tester, name string) coding.Codec {
	t.Helper()
	c, err := coding.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// smallModel has the values that fill gives, from -1 to 1 if it is nil.
func smallModel(t tester, rng *rand.Rand, fill func(i int) float32) *tensor.Params {
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
		if fill != nil {
			params.Vector()[i] = fill(i)
		} else {
			params.Vector()[i] = rng.Float32()*2 - 1
		}
	}
	return params
}

func contents(r *replica.Replica) tensor.Vector {
	v := make(tensor.Vector, r.Len())
	r.Snapshot(v)
	return v
}

// sameBits tells whether two vectors are equal to the last bit, the sign of zero
// included.
func sameBits(a, b tensor.Vector) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// sum is the sum of two models in float64.
func sum(a, p tensor.Vector) []float64 {
	s := make([]float64, len(a))
	for i := range a {
		s[i] = float64(a[i]) + float64(p[i])
	}
	return s
}

// apart is the distance of two sums.
func apart(a, b []float64) float64 {
	squared := 0.0
	for i := range a {
		squared += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(squared)
}

// side is one peer: its model, and what it keeps of exchanges.
type side struct {
	*replica.Replica
	ledger    *replica.Ledger
	initiator *replica.Initiator
	responder *replica.Responder
}

func newSide(t tester, params *tensor.Params, options replica.Options) *side {
	t.Helper()
	if options.SliceLen == 0 {
		options.SliceLen = sliceLen
	}
	r, err := replica.New(params, options)
	if err != nil {
		t.Fatal(err)
	}
	return withLedger(r)
}

func withLedger(r *replica.Replica) *side {
	s := &side{Replica: r, ledger: replica.NewLedger(r)}
	s.initiator, s.responder = replica.NewInitiator(r, s.ledger), replica.NewResponder(r, s.ledger)
	return s
}

// randomSides are two peers with small models.
func randomSides(t tester, seed uint64) (a, p *side) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	a = newSide(t, smallModel(t, rng, nil), replica.Options{})
	p = newSide(t, smallModel(t, rng, nil), replica.Options{})
	return a, p
}

// The names by which the two sides know each other.
const (
	nameOfA = "active"
	nameOfP = "passive"
)

// exchange is one exchange, over pipes of bytes of which each end may be served at
// any moment: what a network does, without one.
type exchange struct {
	t     tester
	a, p  *side
	terms replica.Terms
	lanes []*lane
}

// lane is one of its streams.
type lane struct {
	of       *exchange
	a        *replica.InitiatorLane
	p        *replica.ResponderLane
	toP, toA bytes.Buffer
	atP, atA *wire.Reader
	frame    []byte
	last     bool // the last acknowledgement has been sent
}

// begin starts an exchange at both sides. The number of the exchange, its life, the
// lanes and the window come with the terms.
func begin(t tester, a, p *side, terms replica.Terms) *exchange {
	t.Helper()
	x := &exchange{t: t, a: a, p: p, terms: terms}
	forA, forP := terms, terms
	forA.Partner, forP.Partner = cmp.Or(terms.Partner, nameOfP), cmp.Or(terms.Partner, nameOfA)
	a.initiator.Begin(forA)
	p.responder.Begin(forP)
	tellRanges(t, a.initiator, p.responder)
	for i := range a.initiator.Lanes() {
		l := &lane{of: x, a: a.initiator.Lane(i), p: p.responder.Lane(i)}
		l.atP, l.atA = wire.NewReader(&l.toP, 0), wire.NewReader(&l.toA, 0)
		x.lanes = append(x.lanes, l)
	}
	return x
}

// tellRanges lets P tell what A needs to know before it codes.
func tellRanges(t tester, a *replica.Initiator, p *replica.Responder) {
	t.Helper()
	for {
		frame, ok, err := p.Ranges(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		header, payload, err := wire.NewReader(bytes.NewReader(frame), 0).Next()
		if err == nil {
			err = a.Ranges(header, payload)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !a.Ranged() {
		t.Fatal("ranges are missing")
	}
}

// send lets A send a slice, or its last acknowledgement. It reports false if there
// is nothing to send for now.
func (l *lane) send() bool {
	frame, ok, err := l.a.Code(l.frame)
	if err == nil && !ok && l.a.Over() && !l.last {
		l.last, ok = true, true
		frame, err = l.a.Ack(l.frame)
	}
	if err != nil {
		l.of.t.Fatal(err)
	}
	l.frame = frame
	if ok {
		l.toP.Write(frame)
	}
	return ok
}

// answer lets P take one frame. It reports false if none has come.
func (l *lane) answer() bool {
	if l.toP.Len() == 0 {
		return false
	}
	header, payload, err := l.atP.Next()
	if err != nil {
		l.of.t.Fatal(err)
	}
	if header.Type == wire.TypeAck {
		err = l.p.Ack(header)
	} else {
		var reply []byte
		reply, err = l.p.Code(header, payload)
		l.toA.Write(reply)
	}
	if err != nil {
		l.of.t.Fatal(err)
	}
	return true
}

// apply lets A take one answer. It reports false if none has come.
func (l *lane) apply() bool {
	if l.toA.Len() == 0 {
		return false
	}
	header, payload, err := l.atA.Next()
	if err == nil {
		err = l.a.Diff(header, payload)
	}
	if err != nil {
		l.of.t.Fatal(err)
	}
	return true
}

// finish carries the exchange through and ends it at both sides.
func (x *exchange) finish() {
	x.t.Helper()
	for busy := true; busy; {
		busy = false
		for _, l := range x.lanes {
			for l.send() {
				busy = true
			}
			busy = l.answer() || busy
			busy = l.apply() || busy
		}
	}
	if !x.a.initiator.Done() || !x.p.responder.Done() {
		x.t.Fatalf("nothing moves, and the exchange is not done: %v, %v", x.a.initiator.Done(), x.p.responder.Done())
	}
	x.a.initiator.End(true)
	if n := x.p.responder.End(0); n != 0 {
		x.t.Fatalf("%d slices in doubt after all were applied", n)
	}
}

// settle lets P ask A about everything that is in doubt, and take the answers.
func settle(p, a *side) (applied, dropped, lost int) {
	for {
		exchange, question, ok := p.ledger.Ask(nameOfA)
		if !ok {
			return applied, dropped, lost
		}
		answer := a.ledger.Answer(nameOfP, exchange, question)
		n, m, k := p.ledger.Settle(nameOfA, exchange, question, answer)
		applied, dropped, lost = applied+n, dropped+m, lost+k
	}
}
