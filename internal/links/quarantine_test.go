package links

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/topology"
)

// TestQuarantineGrows: who offends again soon after it came back is kept away for twice
// as long, up to a bound; who behaved for as long begins anew.
func TestQuarantineGrows(t *testing.T) {
	l := choosing(0)
	now := time.Hour
	for i := range 10 {
		want := min(quarantineFirst<<i, quarantineMost)
		if got := l.Quarantine("liar", now); got != want {
			t.Fatalf("offence %d: kept away for %s, want %s", i, got, want)
		}
		if l.Quarantined("liar", now+want-1) != 1 || l.Quarantined("liar", now+want) != 0 {
			t.Errorf("offence %d: not kept away for %s", i, want)
		}
		now += want
	}
	if now += quarantineMost; l.Quarantine("liar", now) != quarantineFirst {
		t.Error("a first offence after a long time is taken for one more")
	}
	if n := l.InQuarantine(now); n != 1 || l.Quarantined("another", now) != 0 {
		t.Errorf("%d in quarantine, want 1", n)
	}
}

// TestWhoKeepsComingStaysInQuarantine: others that offend make no room for one that asks
// again and again.
func TestWhoKeepsComingStaysInQuarantine(t *testing.T) {
	l := choosing(0)
	l.Quarantine("liar", 0)
	for i := range 3 * maxQuarantined {
		l.Quarantine(topology.PeerID(rune('a'+i)), 0)
		if i%(maxQuarantined/2) == 0 && l.Quarantined("liar", 1) == 0 {
			t.Fatalf("the liar is let in after %d others have offended", i)
		}
	}
	if n := l.InQuarantine(1); n != maxQuarantined {
		t.Errorf("%d in quarantine, at most %d", n, maxQuarantined)
	}
}

// TestShortSentencesPushOutNoLongOne: one that offended again and again stays away, however
// many identities that were made up for it offend once.
func TestShortSentencesPushOutNoLongOne(t *testing.T) {
	l := choosing(0)
	now, term := time.Duration(0), time.Duration(0)
	for term < quarantineMost {
		now += term
		term = l.Quarantine("liar", now)
	}
	for i := range 3 * maxQuarantined {
		now += time.Millisecond
		l.Quarantine(topology.PeerID(strconv.Itoa(i)), now)
	}
	if l.Quarantined("liar", now) == 0 {
		t.Error("the liar is let in after others have offended")
	}
	if l.Quarantined(topology.PeerID(strconv.Itoa(3*maxQuarantined-1)), now) == 0 {
		t.Error("the last offender is not kept away")
	}
}

// TestWhatCountsNoMoreMakesRoom: a long sentence that is over and forgotten goes before short
// ones that are not.
func TestWhatCountsNoMoreMakesRoom(t *testing.T) {
	l := choosing(0)
	l.Quarantine("past", 0)
	l.Quarantine("past", quarantineFirst)
	now := quarantineMost
	for i := range maxQuarantined {
		l.Quarantined("past", now) // it asks on, so it is not the oldest
		l.Quarantine(topology.PeerID(strconv.Itoa(i)), now)
	}
	if n := l.InQuarantine(now); n != maxQuarantined {
		t.Errorf("%d in quarantine, want %d", n, maxQuarantined)
	}
}
