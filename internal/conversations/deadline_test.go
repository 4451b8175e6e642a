package conversations

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// accepted has b accept a proposal.
func (r *room) accepted(exchange uint64) *hand {
	r.t.Helper()
	h := r.byHand(exchange)
	h.say(h.pack(r.proposal()))
	h.hears(wire.TypeAccept)
	return h
}

// TestAnExchangeEndsAtItsDeadline: a partner that never stalls, and never gets anywhere, is given up.
func TestAnExchangeEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		h, ack := r.accepted(1), wire.Reserve(nil)
		if err := wire.Seal(ack, wire.Header{Type: wire.TypeAck, Exchange: 1}); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < deadline-time.Second; pass(time.Second / 2) {
			h.say(ack)
		}
		r.b.loop.hears(t, "b", averaging.Proposed)
		for range 4 {
			h.Write(ack) // until b has had enough
			pass(time.Second / 2)
		}
		r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
		r.idle("the deadline")
	})
}

// TestAStreamThatEndsEndsItsExchange: nothing of it can follow, and b waits for nothing.
func TestAStreamThatEndsEndsItsExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.accepted(1).Close()
		pass(time.Second)
		r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
		r.idle("the end")
	})
}

// TestDoubtsExpire: a partner that never comes back is given up, and what that can have cost is told.
func TestDoubtsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.leaveInDoubt()
		r.network.Cut(r.a.at.Self(), r.b.at.Self())
		for range 11 {
			r.b.Repair(time.Now())
			pass(time.Minute)
		}
		r.b.Repair(time.Now())
		if lost := r.b.Host.Ledger.Lost(); r.b.inDoubt() != 0 || lost.Slices != 1 || !(lost.Bound > 0) {
			t.Errorf("%d slices in doubt, %d lost with bound %g", r.b.inDoubt(), lost.Slices, lost.Bound)
		}
	})
}
