package conversations

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/session"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// resetStream counts how often it is reset.
type resetStream struct {
	transport.Stream
	resets *int
}

func (s resetStream) Reset() { *s.resets++ }

// laneOf is a talk on a stream that counts its resets.
func laneOf(resets *int) *conversation {
	t := newConversation()
	t.Stream.Stream = resetStream{resets: resets}
	return t
}

// TestWhatIsBrokenOffEndsOnce: all lanes are reset, the first cause is the one that counts,
// and neither a lane nor the opening of one comes after it.
func TestWhatIsBrokenOffEndsOnce(t *testing.T) {
	x, resets := newOngoing(collective.Event{}), 0
	first, second := laneOf(&resets), laneOf(&resets)
	if !x.add(first) || !x.add(second) {
		t.Fatal("a lane is not taken")
	}
	x.Abandon()
	if x.breakOff(errors.New("later")) || !errors.Is(x.cause(), session.ErrAborted) {
		t.Errorf("broken off for %v, want the first cause", x.cause())
	}
	if resets != 2 || len(first.opened) != 1 || len(second.opened) != 1 {
		t.Errorf("%d of 2 lanes are reset, and %d and %d are woken", resets, len(first.opened), len(second.opened))
	}
	if x.add(laneOf(&resets)) {
		t.Error("a lane is taken after the end")
	}
	opening := true
	if x.opens(func() { opening = false }); opening {
		t.Error("a stream is being opened after the end")
	}
}

// TestTheLaneThatTellsWhyIsNotReset: the partner reads there what was wrong.
func TestTheLaneThatTellsWhyIsNotReset(t *testing.T) {
	x, kept, other := newOngoing(collective.Event{}), 0, 0
	teller := laneOf(&kept)
	x.add(teller)
	x.add(laneOf(&other))
	x.breakOffBut(teller.Stream.Stream, session.ErrLaneMissing)
	if kept != 0 || other != 1 {
		t.Errorf("reset %d times, and the other lane %d times, want 0 and 1", kept, other)
	}
}

// TestAPeerThatClosesWaitsForExchanges: until all have left, of which the end breaks off
// those that take too long.
func TestAPeerThatClosesWaitsForExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u underway
		u.Wait() // for nothing
		x := newOngoing(collective.Event{})
		if !u.enter(x) || !u.Busy() {
			t.Fatal("an exchange is not taken up")
		}
		over := false
		go func() {
			u.Wait()
			over = true
		}()
		synctest.Wait()
		if over {
			t.Error("nobody waits for the exchange")
		}
		u.BreakOff()
		if x.cause() == nil || u.enter(newOngoing(collective.Event{})) {
			t.Error("an exchange goes on, or begins, after the end")
		}
		u.leave(x)
		synctest.Wait()
		if !over || u.Busy() {
			t.Error("still waiting though the exchange has left")
		}
	})
}
