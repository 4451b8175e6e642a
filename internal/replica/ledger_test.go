package replica_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/internal/replica"
	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/tensor"
)

// breakOff carries an exchange so far that A has applied the first of n slices that P
// has answered, and P knows of none, and ends it at P. It returns A's lane with the
// other answers on their way.
func breakOff(t tester, a, p *side, terms replica.Terms, n int, now time.Duration) *lane {
	t.Helper()
	if len(terms.Plan.Codecs()) == 0 {
		terms.Plan = coding.Uniform(codec(t, "raw"))
	}
	terms.Window = n
	l := begin(t, a, p, terms).lanes[0]
	for range n {
		if !l.send() || !l.answer() {
			t.Fatal("the exchange is not that long")
		}
	}
	l.apply()
	if got := p.responder.End(now); got != n {
		t.Fatalf("%d slices in doubt, want %d", got, n)
	}
	return l
}

// next reads the next answer that is on its way to A.
func next(t tester, l *lane) (wire.Header, []byte) {
	t.Helper()
	header, payload, err := l.atA.Next()
	if err != nil {
		t.Fatal(err)
	}
	return header, payload
}

// TestAnswerIsFinal: once A has told P what it has applied, it applies nothing more of
// that exchange, however alive it looks, and answers the same when asked again.
func TestAnswerIsFinal(t *testing.T) {
	a, p := randomSides(t, 1)
	l := breakOff(t, a, p, replica.Terms{Exchange: number}, 3, 0)
	exchange, question, ok := p.ledger.Ask(nameOfA)
	if !ok || exchange != number || len(question.Slices) != 3 {
		t.Fatal(exchange, question, ok)
	}
	answer := a.ledger.Answer(nameOfP, exchange, question)
	if answer != (wire.Settled{Known: true, Applied: 1}) {
		t.Fatalf("answered %+v", answer)
	}
	before := contents(a.Replica)
	if err := l.a.Diff(next(t, l)); !errors.Is(err, replica.ErrSettled) {
		t.Errorf("a difference after the answer: %v", err)
	}
	if !sameBits(contents(a.Replica), before) {
		t.Error("the difference was applied")
	}
	a.initiator.End(false)
	if again := a.ledger.Answer(nameOfP, exchange, question); again != answer {
		t.Errorf("asked again, answered %+v", again)
	}
	if applied, dropped, lost := p.ledger.Settle(nameOfA, exchange, question, answer); applied != 1 || dropped != 2 || lost != 0 {
		t.Errorf("%d applied, %d dropped, %d lost", applied, dropped, lost)
	}
}

// TestNothingIsAppliedOncePooled: no answer about slices in doubt changes a model that is
// part of a sum, or is that of one.
func TestNothingIsAppliedOncePooled(t *testing.T) {
	for name, join := range map[string]func(*replica.Replica){
		"pool": func(r *replica.Replica) { r.Pool(0) }, "adopt": (*replica.Replica).Adopt,
	} {
		a, p := randomSides(t, 1)
		p.Replica.UseGradients()
		breakOff(t, a, p, replica.Terms{Exchange: number}, 3, 0)
		exchange, question, _ := p.ledger.Ask(nameOfA)
		answer := a.ledger.Answer(nameOfP, exchange, question)
		join(p.Replica)
		before := contents(p.Replica)
		if applied, dropped, lost := p.ledger.Settle(nameOfA, exchange, question, answer); applied+dropped != 0 || lost != 3 {
			t.Errorf("%s: %d applied, %d dropped, %d lost", name, applied, dropped, lost)
		}
		if !sameBits(contents(p.Replica), before) {
			t.Errorf("%s: the model has changed", name)
		}
	}
}

// TestSecondAnswerChangesNothing, whatever it says.
func TestSecondAnswerChangesNothing(t *testing.T) {
	a, p := randomSides(t, 1)
	breakOff(t, a, p, replica.Terms{Exchange: number}, 3, 0)
	exchange, question, _ := p.ledger.Ask(nameOfA)
	p.ledger.Settle(nameOfA, exchange, question, a.ledger.Answer(nameOfP, exchange, question))
	before := contents(p.Replica)
	for _, answer := range []wire.Settled{{Known: true, Applied: 7}, {Known: true}, {}} {
		if n, m, k := p.ledger.Settle(nameOfA, exchange, question, answer); n+m+k != 0 {
			t.Errorf("%+v: %d applied, %d dropped, %d lost", answer, n, m, k)
		}
	}
	if !sameBits(contents(p.Replica), before) || p.ledger.Lost() != (replica.Lost{}) {
		t.Error("something has changed")
	}
}

// TestAnswersToOthersQuestions: only the partner of an exchange, asking about it in
// its life, is answered, and an absurd question does no harm.
func TestAnswersToOthersQuestions(t *testing.T) {
	a, p := randomSides(t, 1)
	breakOff(t, a, p, replica.Terms{Exchange: number, Incarnation: 4}, 3, 0)
	_, question, _ := p.ledger.Ask(nameOfA)
	later := question
	later.Incarnation++
	for name, answer := range map[string]wire.Settled{
		"another peer":     a.ledger.Answer("other", number, question),
		"another exchange": a.ledger.Answer(nameOfP, number+1, question),
		"another life":     a.ledger.Answer(nameOfP, number, later),
	} {
		if answer != (wire.Settled{}) {
			t.Errorf("%s: answered %+v", name, answer)
		}
	}
	absurd := wire.Status{Incarnation: 4, Slices: []uint32{math.MaxUint32, 1 << 31, sharedSlices, 64, question.Slices[0]}}
	absurd.Slices = append(absurd.Slices, make([]uint32, 100)...)
	if answer := a.ledger.Answer(nameOfP, number, absurd); answer.Applied&31 != 16 {
		t.Errorf("an absurd question: answered %+v", answer)
	}
}

// TestQuestionsComeInOrder: the exchange that has been in doubt for longest comes
// first, and other partners' are not asked about.
func TestQuestionsComeInOrder(t *testing.T) {
	a, p := randomSides(t, 1)
	for n := range uint64(3) {
		breakOff(t, a, p, replica.Terms{Exchange: 10 - n}, 1, 0)
		a.initiator.End(false)
	}
	if got := p.ledger.Partners(); !slices.Equal(got, []string{nameOfA}) {
		t.Errorf("partners %q", got)
	}
	here := func(partner string) bool { return partner == nameOfA }
	gone := func(partner string) bool { p.ledger.Partners(); return false } // may look at the ledger
	if n, m := p.ledger.Unresolved(here), p.ledger.Unresolved(gone); n != 3 || m != 0 {
		t.Errorf("%d and %d unresolved", n, m)
	}
	if _, _, ok := p.ledger.Ask("other"); ok {
		t.Error("a question to a partner with whom nothing is in doubt")
	}
	for n := range uint64(3) {
		exchange, question, ok := p.ledger.Ask(nameOfA)
		if !ok || exchange != 10-n {
			t.Fatalf("question %d is about exchange %d", n, exchange)
		}
		p.ledger.Settle(nameOfA, exchange, question, a.ledger.Answer(nameOfP, exchange, question))
	}
	if n, norm := p.ledger.InDoubt(); n != 0 || norm != 0 || len(p.ledger.Partners()) != 0 {
		t.Errorf("%d slices of norm %g in doubt after all was settled", n, norm)
	}
}

// lossBound runs a loss and compares what it counts with what it did to the sum of
// the two models.
func lossBound(t *testing.T, codecName string, slicesLost uint64, lose func(a, p *side)) {
	t.Helper()
	a, p := randomSides(t, 1)
	before := sum(contents(a.Replica), contents(p.Replica))
	l := breakOff(t, a, p, replica.Terms{Exchange: number, Incarnation: 2, Plan: coding.Uniform(codec(t, codecName))}, 3, time.Minute)
	l.apply()
	l.apply() // A has all three
	a.initiator.End(false)
	_, waiting := p.ledger.InDoubt()
	lose(a, p)
	off, lost := apart(sum(contents(a.Replica), contents(p.Replica)), before), p.ledger.Lost()
	const rounding = 1e-6 // of the models' own values
	if lost.Slices != slicesLost || off > lost.Bound+rounding || off > waiting+rounding {
		t.Errorf("%d slices lost, the sum is off by %g: at most %g, and %g while in doubt", lost.Slices, off, lost.Bound, waiting)
	}
	if (slicesLost > 0) != (off > 1e-3) || lost.Bound > 2*off+rounding {
		t.Errorf("the sum is off by %g with %d slices lost, at most %g", off, slicesLost, lost.Bound)
	}
	if n, _ := p.ledger.InDoubt(); n != 0 {
		t.Errorf("%d slices still in doubt", n)
	}
}

// TestWhatIsLostIsCounted: each way of giving up counts every slice and bounds by how
// far the sum of the models has moved.
func TestWhatIsLostIsCounted(t *testing.T) {
	for _, name := range codecs {
		for _, c := range []struct {
			name string
			lost uint64
			lose func(a, p *side)
		}{
			{"answered", 0, func(a, p *side) { settle(p, a) }},
			{"an answer that does not know", 3, func(a, p *side) {
				settle(p, withLedger(a.Replica)) // A has forgotten
			}},
			{"the partner was reborn", 3, func(_, p *side) { p.ledger.Reborn(nameOfA, 3) }},
			{"the partner is in the same life", 0, func(a, p *side) {
				p.ledger.Reborn(nameOfA, 2)
				p.ledger.Reborn("other", 9)
				settle(p, a)
			}},
			{"too late", 3, func(_, p *side) { p.ledger.Expire(time.Minute + keep) }},
			{"just in time", 0, func(a, p *side) {
				p.ledger.Expire(time.Minute + keep - 1)
				settle(p, a)
			}},
			{"an answer that comes too late", 3, func(a, p *side) {
				exchange, question, _ := p.ledger.Ask(nameOfA)
				answer := a.ledger.Answer(nameOfP, exchange, question)
				p.ledger.Expire(time.Minute + keep)
				p.ledger.Settle(nameOfA, exchange, question, answer)
			}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) { lossBound(t, name, c.lost, c.lose) })
		}
	}
}

// TestLedgerIsBounded: with too many exchanges in doubt the oldest is given up and
// counted, and an initiator that never ends cleanly forgets its oldest.
func TestLedgerIsBounded(t *testing.T) {
	const maxRecords = 256
	a, p := randomSides(t, 1)
	for n := range uint64(maxRecords + 1) {
		p.Add(smallStepUp(p.Len()))
		breakOff(t, a, p, replica.Terms{Exchange: n}, 2, 0)
		a.initiator.End(false)
		if n, _ := p.ledger.InDoubt(); n > 2*maxDoubts {
			t.Fatalf("%d slices in doubt", n)
		}
	}
	if lost := p.ledger.Lost(); lost.Slices != 2*(maxRecords+1-maxDoubts) || !(lost.Bound > 0) {
		t.Errorf("lost %+v", lost)
	}
	question := wire.Status{Slices: []uint32{0}}
	if a.ledger.Answer(nameOfP, 0, question).Known || !a.ledger.Answer(nameOfP, 1, question).Known {
		t.Error("the oldest record is known, or the second oldest is not")
	}
	if _, _, lost := settle(p, a); lost != 0 {
		t.Errorf("%d slices lost of those that are still in doubt", lost)
	}
}

func smallStepUp(n int) tensor.Vector {
	step := make(tensor.Vector, n)
	for i := range step {
		step[i] = 0.01
	}
	return step
}

// TestRecordsOutliveDoubts: an initiator can answer for twice as long as it is asked,
// then it forgets. An exchange that ended well is forgotten at once.
func TestRecordsOutliveDoubts(t *testing.T) {
	a, p := randomSides(t, 1)
	begin(t, a, p, replica.Terms{Exchange: 1, Plan: coding.Uniform(codec(t, "raw")), Window: 2}).finish()
	breakOff(t, a, p, replica.Terms{Exchange: 2}, 2, 0)
	known := func(exchange uint64) bool {
		return a.ledger.Answer(nameOfP, exchange, wire.Status{Slices: []uint32{0}}).Known
	}
	if known(1) || !known(2) {
		t.Fatalf("known: %v, %v", known(1), known(2))
	}
	a.ledger.Expire(100 * time.Hour) // it has not ended yet
	if !known(2) {
		t.Fatal("the record of an exchange under way is gone")
	}
	a.initiator.End(false)
	for _, at := range []time.Duration{0, 2*keep - 1} {
		if a.ledger.Expire(200*time.Hour + at); !known(2) {
			t.Errorf("forgotten %v after its end", at)
		}
	}
	if a.ledger.Expire(200*time.Hour + 2*keep); known(2) {
		t.Error("never forgotten")
	}
}

func smallStepDown(n int) tensor.Vector {
	step := smallStepUp(n)
	tensor.Scale(step, -1)
	return step
}
