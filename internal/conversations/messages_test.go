package conversations

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// talkative are machines that have a use for what others tell them.
var talkative = setting{traits: collective.Traits{Messages: true}}

// tell has a side tell another the rounds from first to before end.
func (s *side) tell(to *side, first, end uint64) {
	for round := first; round < end; round++ {
		var action collective.Action
		action.Peer, action.Message = to.at.Self(), collective.Message{Kind: 1, Round: round, Value: float64(round) / 2}
		s.Tell(action)
	}
}

// told checks that a loop has heard messages only, in the order of their rounds from 0 with none
// missing among them, and returns how many.
func (l *loop) told(t *testing.T) (n uint64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.heard {
		if e.Kind != collective.Received || e.Message.Round != n || e.Message.Value != float64(n)/2 {
			t.Fatalf("message %d is %v", n, e)
		}
		n++
	}
	return n
}

// TestMessagesArriveInOrder: also those that come faster than they are heard.
func TestMessagesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, talkative)
		r.a.tell(r.b, 0, maxUnsent)
		pass(time.Second)
		r.a.tell(r.b, maxUnsent, 2*maxUnsent)
		pass(time.Second)
		if n := r.b.loop.told(t); n != 2*maxUnsent {
			t.Errorf("%d messages came, want %d", n, 2*maxUnsent)
		}
		r.b.tell(r.a, 0, 1)
		pass(time.Second)
		if n := r.a.loop.told(t); n != 1 {
			t.Errorf("%d messages came the other way", n)
		}
	})
}

// TestMessagesForOneThatTakesNoneAreBounded: telling never waits, and what has room is told once the
// partner takes it again.
func TestMessagesForOneThatTakesNoneAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, talkative)
		r.network.Cut(r.a.at.Self(), r.b.at.Self())
		r.a.tell(r.b, 0, 1)
		synctest.Wait() // it is on its way, and waits for a stream
		began := time.Now()
		r.a.tell(r.b, 1, 100*maxUnsent)
		if took := time.Since(began); took > 0 {
			t.Errorf("telling took %s", took)
		}
		pass(time.Second)
		r.network.HealAll()
		pass(time.Minute)
		if n := r.b.loop.told(t); n != 1+maxUnsent {
			t.Errorf("%d messages came, want the one on its way, and the %d that had room", n, maxUnsent)
		}
	})
}

// TestMessagesNobodyWantsAreNotHeard: those of a stranger, of one that is kept away, and for a machine
// that heeds none.
func TestMessagesNobodyWantsAreNotHeard(t *testing.T) {
	for name, c := range map[string]struct {
		set      setting
		given    func(*room)
		declined bool
	}{
		"a stranger's":         {talkative, func(r *room) { r.b.knows() }, true},
		"to one without a use": {setting{}, func(*room) {}, true},
		"of one kept away":     {talkative, func(r *room) { r.b.Host.Links.Quarantine(r.a.at.Self(), r.b.Life.Now()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, c.set)
				c.given(r)
				r.a.tell(r.b, 0, 3)
				pass(time.Second)
				r.b.loop.hears(t, "b")
				if n := len(r.b.Counters.Counts().Declined); (n > 0) != c.declined {
					t.Errorf("declined for %d reasons", n)
				}
			})
		})
	}
}

// TestAMalformedMessageIsRefused: those before it have been heard, and nothing after it is.
func TestAMalformedMessageIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, talkative)
		h := r.byHand(0)
		h.say(h.pack(wire.Tell{Kind: 1}))
		bad := h.pack(wire.Tell{Kind: 1, Round: 1, Value: math.Inf(1)})
		h.say(append(bad, h.pack(wire.Tell{Kind: 1, Round: 1, Value: 0.5})...))
		var refuse wire.Refuse
		if err := refuse.Decode(h.hears(wire.TypeRefuse)); err != nil || refuse.Reason != wire.ReasonProtocol {
			t.Errorf("refused for %v, %v", refuse.Reason, err)
		}
		h.Close()
		pass(time.Second)
		if n := r.b.loop.told(t); n != 1 {
			t.Errorf("%d messages are heard, want the one before", n)
		}
	})
}

// TestMessagesEndWithTheirPeer: who closes tells nothing more, hears nothing more, and waits for nobody
// longer than it has said.
func TestMessagesEndWithTheirPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, talkative)
		r.a.tell(r.b, 0, 10)
		r.b.tell(r.a, 0, 1)
		pass(time.Second)
		r.network.Cut(r.a.at.Self(), r.b.at.Self())
		r.a.tell(r.b, 10, 11)
		began := time.Now()
		r.a.EndMessages(time.Second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("ending took %s", took)
		}
		r.network.HealAll()
		r.a.tell(r.b, 11, 20)
		r.b.tell(r.a, 1, 2)
		r.a.EndMessages(stall)
		pass(time.Second)
		if n := r.b.loop.told(t); n < 10 || n > 11 {
			t.Errorf("%d messages came, want the 10 before the end, and perhaps the one on its way", n)
		}
		if n := r.a.loop.told(t); n != 1 {
			t.Errorf("%d messages are heard, want the one before the end", n)
		}
	})
}
