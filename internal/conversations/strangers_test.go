package conversations

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// refusal says something to b on a stream of its own, and returns for what b refuses it.
func (r *room) refusal(exchange uint64, message wire.Message) wire.Reason {
	r.t.Helper()
	h := r.byHand(exchange)
	defer h.Reset()
	h.say(h.pack(message))
	var refuse wire.Refuse
	if err := refuse.Decode(h.hears(wire.TypeRefuse)); err != nil {
		r.t.Fatal(err)
	}
	return refuse.Reason
}

// TestWhoIsNoMemberIsNotServed: whatever a stranger wants, it is refused at once for that reason, and the
// machine hears of nothing.
func TestWhoIsNoMemberIsNotServed(t *testing.T) {
	for name, message := range map[string]func(*room) wire.Message{
		"a proposal": func(r *room) wire.Message { return r.proposal() },
		"a lane":     func(*room) wire.Message { return wire.Lane{Lane: 1} },
		"a question": func(*room) wire.Message { return wire.Status{Incarnation: 1, Slices: []uint32{0}} },
		"an offer":   func(r *room) wire.Message { return wire.Offer{Opening: r.proposal().Opening, Parts: 1} },
		"a message":  func(*room) wire.Message { return wire.Tell{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(t, setting{traits: collective.Traits{Messages: true, Pools: true}})
				r.b.knows()
				began := time.Now()
				if got := r.refusal(1, message(r)); got != wire.ReasonNotMember {
					t.Errorf("refused for %v, want %v", got, wire.ReasonNotMember)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the answer took %s", took)
				}
				pass(time.Second)
				r.b.loop.hears(t, "b")
				r.idle("a stranger")
			})
		})
	}
}

// TestMessagesAreHeardAtARate: a partner that tells more than a machine in lock-step would is heard more
// slowly, loses nothing by it, and is not kept away.
func TestMessagesAreHeardAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const flood = 5000
		r := newRoom(t, talkative)
		h, began := r.byHand(0), time.Now()
		defer h.Reset()
		for round := range uint64(flood) {
			h.say(h.pack(wire.Tell{Kind: 1, Round: round, Value: float64(round) / 2}))
		}
		synctest.Wait()
		took := time.Since(began)
		most := float64(ration.AtFirst) + float64(ration.PerSecond)*took.Seconds()
		if n := r.b.loop.told(t); n == flood || float64(n) > most {
			t.Errorf("%d of %d messages are heard within %s, want at most %.0f", n, flood, took, most)
		}
		pass(time.Minute)
		if n := r.b.loop.told(t); n != flood || r.b.Quarantined(r.a.at.Self()) != 0 {
			t.Errorf("%d of %d messages are heard in the end, and their sender is kept away for %s", n, flood, r.b.Quarantined(r.a.at.Self()))
		}
	})
}
