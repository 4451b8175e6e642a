package conversations

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/internal/wire"
)

// TestWhoClosesLetsExchangesEnd: those under way come to their end, which is waited for, and no
// other is begun or served.
func TestWhoClosesLetsExchangesEnd(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{link: slow})
			r.a.propose(r.b, 1)
			pass(2 * time.Second)
			leaves := r.a
			if asked {
				leaves = r.b
			}
			close(leaves.Life.Closing)
			if _, ok := leaves.Propose(averaging.Action{Peer: "c", Exchange: 2}); ok {
				t.Error("one that closes begins an exchange")
			}
			if _, ok := leaves.Send(collective.Action{}); ok {
				t.Error("one that closes begins a transfer")
			}
			began := time.Now()
			leaves.Wait()
			if took := time.Since(began); took == 0 || leaves.Busy() {
				t.Errorf("waited for %s", took)
			}
			pass(time.Second)
			r.a.loop.hears(t, "a", averaging.Accepted, averaging.Finished)
			r.b.loop.hears(t, "b", averaging.Proposed, averaging.Finished)
			leaves.Wait() // for nothing
			r.conserved("closing")
		})
	}
}

// TestBreakingOffEndsExchanges: at once, also what is on its way to begin; of what a peer that closes
// has broken off itself it tells its machine, and counts no failure.
func TestBreakingOffEndsExchanges(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{link: slow})
			r.a.propose(r.b, 1)
			pass(2 * time.Second)
			leaves, stays := r.a, r.b
			if asked {
				leaves, stays = r.b, r.a
			}
			close(leaves.Life.Closing)
			began := time.Now()
			leaves.BreakOff()
			leaves.Wait()
			if took := time.Since(began); took > time.Second {
				t.Errorf("breaking off took %s", took)
			}
			pass(stall)
			if got := leaves.loop.last(); got.Kind != averaging.Failed || len(leaves.loop.ends) != 0 {
				t.Errorf("who closes hears %v, and hooks hear %v", got, leaves.loop.ends)
			}
			if counts := leaves.Counters.Counts(); len(counts.Failed)+len(counts.Dropped) != 0 {
				t.Errorf("who closes counts %v and %v", counts.Failed, counts.Dropped)
			}
			if got := stays.loop.last(); got.Kind != averaging.Failed || len(stays.loop.ends) != 1 {
				t.Errorf("who stays hears %v, and hooks hear %v", got, stays.loop.ends)
			}
			r.b.RepairAll(stall)
			r.conserved("breaking off")
			r.idle("breaking off")
		})
	}
}

// TestNothingBeginsOnceBrokenOff: what the machine had asked for before fails at once, and a partner's
// proposal is not answered.
func TestNothingBeginsOnceBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{})
		r.a.BreakOff()
		r.a.propose(r.b, 1)
		pass(time.Second)
		r.a.loop.hears(t, "a", averaging.Failed)
		if ends := r.a.loop.ends; len(ends) != 1 || !errors.Is(ends[0], session.ErrAborted) {
			t.Errorf("hooks hear %v", ends)
		}
		r.b.loop.hears(t, "b")
		r.b.propose(r.a, 1)
		pass(time.Second)
		r.b.loop.hears(t, "b", averaging.Failed)
		r.idle("after the end")
	})
}

// TestAMachineThatHasStoppedAnswersNobody: a proposal that it has left open is refused when its peer
// ends, and broken off when that has waited long enough for exchanges; nobody waits for the answer.
func TestAMachineThatHasStoppedAnswersNobody(t *testing.T) {
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, setting{})
			r.b.loop.silent = true
			r.a.propose(r.b, 1)
			pass(time.Second)
			r.a.loop.hears(t, "a")
			end, want, why := r.b.Life.End, averaging.Refused, averaging.Closing
			if breaks {
				end, want, why = r.b.BreakOff, averaging.Failed, 0
			}
			end()
			r.b.Wait()
			pass(time.Second)
			if got := r.a.loop.last(); got.Kind != want || got.Reason != why {
				t.Errorf("a hears %v, want %v for %v", got, want, why)
			}
			r.idle("the end")
		})
	}
}

// TestALaneOfNothingIsDeclined: of no exchange that is under way, and of one that has it already.
func TestALaneOfNothingIsDeclined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t, setting{lanes: 2})
		first, proposal := r.byHand(1), r.proposal()
		proposal.Lanes = 2
		first.say(first.pack(proposal))
		first.hears(wire.TypeAccept)
		for _, c := range []struct {
			exchange uint64
			lane     uint8
		}{{2, 1}, {1, 0}, {1, 2}} {
			other := r.byHand(c.exchange)
			other.say(other.pack(wire.Lane{Lane: c.lane}))
			other.hears(wire.TypeRefuse)
			other.Close()
		}
		if served, _, _ := r.b.Kept(); served != 1 {
			t.Errorf("%d exchanges are served, want the one", served)
		}
		first.Reset()
		pass(2 * stall)
		r.b.loop.hears(t, "b", averaging.Proposed, averaging.Failed)
		r.idle("its end")
	})
}
