package orders

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-97356399/murmuration/internal/wire"
	"github.com/seed-97356399/murmuration/peer/control"
	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestWhoHarmsIsToldSoon: an introduction goes with the digest after another partner does harm, or its
// trust has changed much, but not soon after the last, and when there is no harm any more; what has
// changed little goes with the next that goes in any case.
func TestWhoHarmsIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, member, _ := observed(t)
		for range introductions {
			s.publish(t)
		}
		harm := func(partner transport.PeerID, trust float64) control.Harm {
			return control.Harm{Partner: partner, Harm: 1.5, Trust: trust}
		}
		for _, c := range []struct {
			what  string
			after time.Duration
			harm  control.Harm
			tells bool
		}{
			{"nobody", time.Minute, control.Harm{}, false},
			{"one", time.Second, harm(member.Self(), 0.4), true},
			{"the same", time.Minute, harm(member.Self(), 0.3), false},
			{"much less trust", time.Second, harm(member.Self(), 0.1), true},
			{"another at once", warnSpacing - 1, harm("b", 0.1), false},
			{"another later", 1, harm("b", 0.1), true},
			{"nobody any more", warnSpacing, control.Harm{}, true},
		} {
			time.Sleep(c.after)
			s.harm = c.harm
			if told := s.publish(t); told != c.tells {
				t.Errorf("%s: an introduction goes: %v", c.what, told)
			}
		}
		time.Sleep(warnSpacing)
		s.alarms = 4
		if !s.publish(t) || s.publish(t) {
			t.Error("an introduction goes when alarms change, and then only")
		}
		time.Sleep(warnSpacing)
		s.alarms = 0
		if !s.publish(t) {
			t.Error("the end of alarms is not told")
		}
		s.harm = harm("c", 0.1)
		told := 0
		for range introduceEvery { // for who has not heard the first
			time.Sleep(warnSpacing)
			if s.publish(t) {
				told++
			}
		}
		if told != 2 {
			t.Errorf("a harm that stays is told %d times", told)
		}
	})
}

// publish tells whether an introduction goes with the next digest.
func (s *subject) publish(t *testing.T) bool {
	t.Helper()
	messages, err := s.digests.messages(s)
	if err != nil {
		t.Fatal(err)
	}
	return len(messages) == 2
}

// TestWhoHarmsIsKnown: what a member says of a partner that harms it is known of it by name, stays with
// its next digest, and reaches who asks from outside.
func TestWhoHarmsIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, member, outsider := observed(t)
		want := control.Harm{Partner: s.at.Self(), Harm: 1.5, Trust: 0.25}
		look := func() control.Harm {
			seen, err := control.Observer{Transport: outsider, Run: run}.Members(t.Context(), s.at.Self())
			if err != nil || len(seen) != 2 {
				t.Fatalf("seen: %+v, %v", seen, err)
			}
			return seen[1].Harm
		}
		told := func(kind wire.ControlKind, sequence uint64, harm control.Harm) {
			time.Sleep(time.Minute)
			if v := s.heard(t, member, kind, sequence, control.Digest{Incarnation: 1, Harm: harm}.Body(kind)); v != transport.Forward {
				t.Errorf("message %d: %v", sequence, v)
			}
		}
		told(wire.ControlIntroduction, 1, want)
		if got := look(); got != want {
			t.Errorf("seen from outside: %+v, want %+v", got, want)
		}
		told(wire.ControlDigest, 2, control.Harm{})
		if got := look(); got != want {
			t.Errorf("after a digest: %+v, want %+v", got, want)
		}
		told(wire.ControlIntroduction, 3, control.Harm{Partner: "who is no member", Harm: 1.5, Trust: 0.25})
		if got := look(); got != (control.Harm{}) {
			t.Errorf("of one that is no member: %+v", got)
		}
		told(wire.ControlIntroduction, 4, control.Harm{})
		if got := look(); got != (control.Harm{}) {
			t.Errorf("after its end: %+v", got)
		}
	})
}
