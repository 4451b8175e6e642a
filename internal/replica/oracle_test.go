package replica_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// The oracle knows nothing of windows, bitmaps, locks or frames that are kept. It has
// two vectors, to which it adds and from which it subtracts the differences that it
// reads off the wire, and for each exchange the set of slices applied at either side.

// sharedRanges are where the slices of the small model are.
var sharedRanges = [sharedSlices][2]int{{0, 8}, {8, 16}, {16, 24}, {24, 32}, {32, 35}, {42, 50}, {50, 53}, {53, 55}}

// told is what the oracle knows of one exchange.
type told struct {
	number, life uint64
	diffs        map[int]tensor.Vector // by slice, as they were sent
	atA, atP     map[int]bool          // slices applied
	order        [][]int               // per lane, slices in the order of their answers
	acked        []int                 // per lane, how many of these P has been told of

	endSeen   time.Duration // when A's ledger first saw that it had ended, or never
	settled   bool          // A has answered a question about it
	forgotten bool          // A has no record of it any more
	lost      bool          // P has given up what was in doubt
}

// model is the state of the test: two real sides, and the oracle.
type model struct {
	t          *rapid.T
	rng        *rand.Rand
	a, p       *side
	codecName  string
	x          *exchange // of which at least one side has not ended
	liveA      bool
	liveP      bool
	number     uint64
	life       uint64
	now        time.Duration
	unread     []answered // answers under way to P
	wantA      tensor.Vector
	wantP      tensor.Vector
	current    *told
	inDoubt    []*told // in the order in which they got there
	lost       uint64
	trained    []float64 // what both models together should be
	ended      []*told   // at A
	sinceDoubt map[*told]time.Duration
}

// answered is an answer on its way, with its question.
type answered struct {
	exchange uint64
	question wire.Status
	answer   wire.Settled
}

// TestAnyInterleaving runs exchanges, cuts, deadlines, questions, repeated and late
// answers, restarts and expiry in any order, with gradient steps on both sides. After
// every action both models are the oracle's to the last bit, P has applied nothing
// that A has not, what the ledger counts is what the oracle counts, and the sum of the
// two models is off by no more than the ledger's bounds. When all is settled, both
// sides have applied the same slices of every exchange of which nothing was lost.
func TestAnyInterleaving(t *testing.T) {
	for _, name := range codecs {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newModel(t, name)
				for range 12 {
					t.Repeat(m.actions())
				}
				m.windUp()
			})
		})
	}
}

func newModel(t *rapid.T, name string) *model {
	seed := rapid.Uint64().Draw(t, "seed")
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 3)), codecName: name, life: 1, sinceDoubt: map[*told]time.Duration{}}
	m.a, m.p = randomSides(t, seed)
	m.wantA, m.wantP = contents(m.a.Replica), contents(m.p.Replica)
	m.trained = sum(m.wantA, m.wantP)
	return m
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.check, "begin": m.begin, "train": m.train,
		"send": several(m.send), "answer": several(m.answer), "apply": several(m.apply), "go on": m.goOn,
		"cut": seldom(m.cut), "A ends": seldom(m.endA), "P ends": seldom(m.endP),
		"ask": m.ask, "settle": m.settle, "restart": seldom(m.restart), "expire": seldom(m.expire),
	}
}

// several does an action up to four times.
func several(action func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			action(t)
		}
	}
}

// seldom does an action once in four times.
func seldom(action func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "seldom") == 0 {
			action(t)
		}
	}
}

func (m *model) begin(t *rapid.T) {
	if m.liveA || m.liveP {
		return
	}
	m.number++
	m.x = begin(t, m.a, m.p, replica.Terms{
		Plan: coding.Uniform(codec(t, m.codecName)), Exchange: m.number, Incarnation: m.life,
		Window:  rapid.IntRange(1, 4).Draw(t, "window"),
		Lanes:   rapid.IntRange(1, 3).Draw(t, "lanes"),
		Overlap: rapid.IntRange(1, 3).Draw(t, "overlap"),
	})
	m.liveA, m.liveP = true, true
	n := len(m.x.lanes)
	m.current = &told{
		number: m.number, life: m.life, diffs: map[int]tensor.Vector{}, atA: map[int]bool{}, atP: map[int]bool{},
		order: make([][]int, n), acked: make([]int, n),
	}
}

// goOn lets an exchange that nothing has disturbed go on for a while.
func (m *model) goOn(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "rounds") {
		m.send(t)
		m.answer(t)
		m.apply(t)
	}
}

// lane draws one of the exchange's lanes.
func (m *model) lane(t *rapid.T) (int, *lane) {
	i := rapid.IntRange(0, len(m.x.lanes)-1).Draw(t, "lane")
	return i, m.x.lanes[i]
}

func (m *model) send(t *rapid.T) {
	if m.liveA {
		_, l := m.lane(t)
		l.send()
	}
}

func (m *model) answer(t *rapid.T) {
	if !m.liveP {
		return
	}
	i, l := m.lane(t)
	before := l.toA.Len()
	if l.toP.Len() == 0 {
		return
	}
	header := headerOf(l.toP.Bytes())
	l.answer()
	for ; m.current.acked[i] < int(header.Ack); m.current.acked[i]++ {
		m.applyAtP(m.current, m.current.order[i][m.current.acked[i]])
	}
	if frame := l.toA.Bytes()[before:]; len(frame) > 0 {
		slice := int(header.Slice)
		m.current.order[i] = append(m.current.order[i], slice)
		diff := make(tensor.Vector, sharedRanges[slice][1]-sharedRanges[slice][0])
		if err := codec(t, m.codecName).Diff.Decode(diff, frame[wire.HeaderSize+wire.InfoSize:], nil); err != nil {
			t.Fatal(err)
		}
		m.current.diffs[slice] = diff
	}
}

// headerOf reads what the oracle needs of a frame.
func headerOf(frame []byte) wire.Header {
	return wire.Header{Slice: binary.LittleEndian.Uint32(frame[16:]), Ack: binary.LittleEndian.Uint32(frame[20:])}
}

// applyAtP is what P does with a slice of an exchange.
func (m *model) applyAtP(x *told, slice int) {
	if !x.atA[slice] || x.atP[slice] {
		m.t.Fatalf("P applies slice %d of exchange %d: at A %v, at P already %v", slice, x.number, x.atA[slice], x.atP[slice])
	}
	x.atP[slice] = true
	for k, v := range x.diffs[slice] {
		m.wantP[sharedRanges[slice][0]+k] += v
	}
}

func (m *model) apply(t *rapid.T) {
	if !m.liveA {
		return
	}
	_, l := m.lane(t)
	if l.toA.Len() == 0 {
		return
	}
	header, payload, err := l.atA.Next()
	if err != nil {
		t.Fatal(err)
	}
	settled := m.current.settled
	err = l.a.Diff(header, payload)
	if settled {
		if !errors.Is(err, replica.ErrSettled) {
			t.Fatalf("a difference after the answer: %v", err)
		}
		m.stopA()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	slice := int(header.Slice)
	m.current.atA[slice] = true
	for k, v := range m.current.diffs[slice] {
		m.wantA[sharedRanges[slice][0]+k] -= v
	}
}

// check compares everything that can be seen with the oracle.
func (m *model) check(t *rapid.T) {
	if !sameBits(contents(m.a.Replica), m.wantA) {
		t.Fatal("A's model is not the oracle's")
	}
	if !sameBits(contents(m.p.Replica), m.wantP) {
		t.Fatal("P's model is not the oracle's")
	}
	n, bound := m.p.ledger.InDoubt()
	if want := m.slicesInDoubt(); n != want {
		t.Fatalf("%d slices in doubt, want %d", n, want)
	}
	lost := m.p.ledger.Lost()
	if lost.Slices != m.lost {
		t.Fatalf("%d slices lost, want %d", lost.Slices, m.lost)
	}
	if m.liveP {
		return // slices that A has and P will have are nobody's doubt yet
	}
	if off, most := apart(sum(m.wantA, m.wantP), m.trained), bound+lost.Bound+1e-5; off > most {
		t.Fatalf("the sum is off by %g, the ledger says at most %g", off, most)
	}
}

// waiting are the slices of an exchange that were answered and not acknowledged.
func (x *told) waiting() (slices []int) {
	for i, order := range x.order {
		slices = append(slices, order[x.acked[i]:]...)
	}
	return slices
}

func (m *model) slicesInDoubt() (n int) {
	for _, x := range m.inDoubt {
		n += len(x.waiting())
	}
	return n
}

// doubted is the exchange of a question.
func (m *model) doubted(number uint64) int {
	return slices.IndexFunc(m.inDoubt, func(x *told) bool { return x.number == number })
}

// train lets one of the two take a gradient step.
func (m *model) train(t *rapid.T) {
	s, want := m.a, m.wantA
	if rapid.Bool().Draw(t, "P") {
		s, want = m.p, m.wantP
	}
	step := smallStep(m.rng, s.Len())
	s.Add(step)
	for i, v := range step {
		if i < frozenFrom || i >= localFrom {
			before := want[i]
			want[i] += v
			m.trained[i] += float64(want[i]) - float64(before)
		}
	}
}
