package replica_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-97356399/murmuration/internal/replica"
)

// The oracle's part that is about what comes after an exchange.

// keep and maxDoubts are how long, and how many exchanges, a ledger keeps in doubt.
const (
	keep      = replica.DefaultKeep
	maxDoubts = 8
	never     = -1
)

// cut loses what is on its way on one lane, one way.
func (m *model) cut(t *rapid.T) {
	if !m.liveP {
		return
	}
	_, l := m.lane(t)
	if rapid.Bool().Draw(t, "from A") {
		l.toP.Reset()
	} else {
		l.toA.Reset()
	}
	m.stopP() // nothing comes after a gap: the stream is dead from here on
}

// stopA and stopP end the exchange at one side, as a broken stream or a deadline
// would: the other may notice much later. A knows that P has applied everything if P
// has closed its stream after that.
func (m *model) stopA() {
	x := m.current
	clean := m.a.initiator.Done() && len(x.atP) == sharedSlices && !m.liveP
	m.a.initiator.End(clean)
	m.liveA = false
	x.forgotten = clean
	x.endSeen = never
	m.ended = append(m.ended, x)
}

func (m *model) stopP() {
	x := m.current
	want := x.waiting()
	if n := m.p.responder.End(m.now); n != len(want) {
		m.t.Fatalf("%d slices in doubt, want %d", n, len(want))
	}
	m.liveP = false
	if len(want) == 0 {
		return
	}
	if len(m.inDoubt) == maxDoubts {
		m.lose(0)
	}
	m.inDoubt = append(m.inDoubt, x)
	m.sinceDoubt[x] = m.now
}

func (m *model) endA(*rapid.T) {
	if m.liveA {
		m.stopA()
	}
}

func (m *model) endP(*rapid.T) {
	if m.liveP {
		m.stopP()
	}
}

// ask lets P ask, and A answer. The answer gets on its way.
func (m *model) ask(t *rapid.T) {
	exchange, question, ok := m.p.ledger.Ask(nameOfA)
	if ok != (len(m.inDoubt) > 0) {
		t.Fatalf("asking is %v with %d exchanges in doubt", ok, len(m.inDoubt))
	}
	if !ok {
		return
	}
	x := m.inDoubt[0]
	if exchange != x.number || question.Incarnation != x.life || len(question.Slices) != len(x.waiting()) {
		t.Fatalf("asked about exchange %d of life %d: %v", exchange, question.Incarnation, question.Slices)
	}
	answer := m.a.ledger.Answer(nameOfP, exchange, question)
	if known := !x.forgotten; answer.Known != known {
		t.Fatalf("exchange %d: known is %v, want %v", exchange, answer.Known, known)
	}
	x.settled = x.settled || answer.Known
	m.unread = append(m.unread, answered{exchange, question, answer})
}

// settle lets one of the answers arrive, any number of times and in any order.
func (m *model) settle(t *rapid.T) {
	if len(m.unread) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.unread)-1).Draw(t, "answer")
	u := m.unread[i]
	if !rapid.Bool().Draw(t, "comes again") {
		m.unread = slices.Delete(m.unread, i, i+1)
	}
	applied, dropped, lost := m.p.ledger.Settle(nameOfA, u.exchange, u.question, u.answer)
	wantApplied, wantDropped, wantLost := m.resolve(u)
	if applied != wantApplied || dropped != wantDropped || lost != wantLost {
		t.Fatalf("exchange %d: %d applied, %d dropped, %d lost; want %d, %d, %d",
			u.exchange, applied, dropped, lost, wantApplied, wantDropped, wantLost)
	}
}

// resolve is what an answer does.
func (m *model) resolve(u answered) (applied, dropped, lost int) {
	i := m.doubted(u.exchange)
	if i < 0 {
		return 0, 0, 0
	}
	x := m.inDoubt[i]
	if !u.answer.Known {
		n := len(x.waiting())
		m.lose(i)
		return 0, 0, n
	}
	for _, slice := range x.waiting() {
		if x.atA[slice] {
			m.applyAtP(x, slice)
			applied++
		} else {
			dropped++
		}
	}
	m.inDoubt = slices.Delete(m.inDoubt, i, i+1)
	return applied, dropped, 0
}

// lose is what P does with an exchange that nobody can tell it about.
func (m *model) lose(i int) {
	x := m.inDoubt[i]
	m.lost += uint64(len(x.waiting()))
	x.lost = true
	m.inDoubt = slices.Delete(m.inDoubt, i, i+1)
}

// restart gives A another life, with the same model and no memory of the one before.
func (m *model) restart(t *rapid.T) {
	if m.liveA || m.liveP {
		return
	}
	m.life++
	m.a = withLedger(m.a.Replica)
	for _, x := range m.ended {
		x.forgotten = true
	}
	if rapid.Bool().Draw(t, "P notices") {
		m.p.ledger.Reborn(nameOfA, m.life)
		for len(m.inDoubt) > 0 {
			m.lose(0)
		}
	}
}

// expire lets time go by, and both sides give up what is too old.
func (m *model) expire(t *rapid.T) {
	m.now += time.Duration(rapid.IntRange(0, 3).Draw(t, "minutes")) * time.Minute
	m.p.ledger.Expire(m.now)
	for i := len(m.inDoubt) - 1; i >= 0; i-- {
		if m.now-m.sinceDoubt[m.inDoubt[i]] >= keep {
			m.lose(i)
		}
	}
	m.a.ledger.Expire(m.now)
	for _, x := range m.ended {
		if x.endSeen == never {
			x.endSeen = m.now
		}
		x.forgotten = x.forgotten || m.now-x.endSeen >= 2*keep
	}
}

// windUp ends everything, settles it, and compares what both sides have applied.
func (m *model) windUp() {
	if m.liveP {
		m.stopP()
	}
	if m.liveA {
		m.stopA()
	}
	m.settleAll()
	m.check(m.t)
	if n, bound := m.p.ledger.InDoubt(); n != 0 || bound != 0 || len(m.p.ledger.Partners()) != 0 {
		m.t.Fatalf("%d slices of norm %g are still in doubt", n, bound)
	}
	for _, x := range m.ended {
		if same := len(x.atA) == len(x.atP); !same && !x.lost {
			m.t.Fatalf("exchange %d: A has applied %v, P %v", x.number, x.atA, x.atP)
		}
	}
}

func (m *model) settleAll() {
	for len(m.inDoubt) > 0 {
		exchange, question, _ := m.p.ledger.Ask(nameOfA)
		u := answered{exchange, question, m.a.ledger.Answer(nameOfP, exchange, question)}
		m.p.ledger.Settle(nameOfA, exchange, question, u.answer)
		m.resolve(u)
	}
}
