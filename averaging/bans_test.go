package averaging_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// maxBans is how many quarantines are kept.
const maxBans = 64

func TestLongestQuarantinesAreKept(t *testing.T) {
	m := newPassive(t, averaging.Config{})
	name := func(i int) topology.PeerID { return topology.PeerID(fmt.Sprint("x", i)) }
	// The third is the shortest; the one too many is longer, the next is shorter
	// than all that are left.
	const shortest = 3
	for i := range maxBans {
		after := time.Duration(100+i) * time.Second
		if i == shortest {
			after = 50 * time.Second
		}
		m.Handle(0, averaging.Event{Kind: averaging.Quarantined, Peer: name(i), After: after}, nil)
	}
	m.Handle(0, averaging.Event{Kind: averaging.Quarantined, Peer: "longer", After: time.Hour}, nil)
	m.Handle(0, averaging.Event{Kind: averaging.Quarantined, Peer: "brief", After: time.Second}, nil)
	for _, c := range []struct {
		peer topology.PeerID
		held bool
	}{{name(shortest), false}, {"brief", false}, {"longer", true}, {name(0), true}, {name(maxBans - 1), true}} {
		answer := proposeTo(m, 0, c.peer, 1)
		if held := answer.Reason == averaging.Quarantine; held != c.held {
			t.Errorf("%s: %v, want held %v", c.peer, answer, c.held)
		}
	}
}

func TestQuarantineOfAnyLengthHolds(t *testing.T) {
	m := newPassive(t, averaging.Config{})
	m.Handle(time.Hour, averaging.Event{Kind: averaging.Quarantined, Peer: "b", After: math.MaxInt64}, nil)
	m.Handle(time.Hour, averaging.Event{Kind: averaging.Quarantined, Peer: "c", After: -math.MaxInt64}, nil)
	if answer := proposeTo(m, 1e6*time.Hour, "b", 1); answer.Reason != averaging.Quarantine {
		t.Errorf("%v, want a refusal for quarantine", answer)
	}
	if answer := proposeTo(m, 1e6*time.Hour, "c", 1); answer.Kind != averaging.Accept {
		t.Errorf("%v by one whose quarantine is over", answer)
	}
}

// TestPauseAfterPartnersQuarantineIsBounded refuses for quarantine again and again
// and measures how long the machine leaves the partner alone.
func TestPauseAfterPartnersQuarantineIsBounded(t *testing.T) {
	m := newMachine(t, averaging.Config{Pace: averaging.Pace{Every: 1}, RetryAfter: time.Second})
	now, refused := time.Second, time.Duration(0)
	var pauses []time.Duration
	for len(pauses) < 10 && now < time.Hour {
		for _, a := range m.Handle(now, averaging.Event{Kind: averaging.StepDone}, nil) {
			if a.Kind != averaging.Propose {
				continue
			}
			if refused > 0 {
				pauses = append(pauses, now-refused)
			}
			refused = now
			m.Handle(now, averaging.Event{Kind: averaging.Refused, Peer: a.Peer, Exchange: a.Exchange, Reason: averaging.Quarantine}, nil)
		}
		now += time.Second
	}
	if len(pauses) < 10 {
		t.Fatalf("asked again after %v, and no more", pauses)
	}
	for i, pause := range pauses {
		if want := time.Second << min(i, 6); pause != want {
			t.Errorf("pause %d: %s, want %s", i, pause, want)
		}
	}
}

// TestAFailingPartnerIsTriedAgainEverMoreSeldom has every exchange with the one
// partner fail, with a change of the view in between that has no part in it, and
// measures for how long it is left alone. Once it leaves the view and comes back, it
// begins anew.
func TestAFailingPartnerIsTriedAgainEverMoreSeldom(t *testing.T) {
	m := newMachine(t, averaging.Config{Pace: averaging.Pace{Every: 1}, RetryAfter: time.Second})
	with, without := overlayOf(t, []string{"a=active", "p=passive"}), overlayOf(t, []string{"a=active", "q=passive"})
	now, failed := time.Second, time.Duration(0)
	var pauses []time.Duration
	m.Handle(now, averaging.Event{Kind: averaging.ViewChanged, Overlay: with}, nil)
	for len(pauses) < 6 && now < time.Hour {
		for _, a := range m.Handle(now, averaging.Event{Kind: averaging.StepDone}, nil) {
			if a.Kind != averaging.Propose {
				continue
			}
			if failed > 0 {
				pauses = append(pauses, now-failed)
			}
			failed = now
			m.Handle(now, averaging.Event{Kind: averaging.Failed, Peer: a.Peer, Exchange: a.Exchange}, nil)
			m.Handle(now, averaging.Event{Kind: averaging.ViewChanged, Overlay: with}, nil)
			if len(pauses) == 4 {
				m.Handle(now, averaging.Event{Kind: averaging.ViewChanged, Overlay: without}, nil)
				m.Handle(now, averaging.Event{Kind: averaging.ViewChanged, Overlay: with}, nil)
			}
		}
		now += time.Second
	}
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, time.Second, time.Second}
	if !slices.Equal(pauses, want) {
		t.Errorf("left alone for %v, want %v", pauses, want)
	}
}
