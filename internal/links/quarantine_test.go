package links

import (
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
