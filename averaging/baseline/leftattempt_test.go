package baseline

import (
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// A member that is ready again with the place that it was given has left the attempt: the
// leader begins another at once, though the word that says so was lost.
func TestLeaderHearsThatAnAttemptWasLeft(t *testing.T) {
	for _, state := range []attendance{placed, finished} {
		d, m := drivenLeader(t, true)
		status := func(attempt uint64) averaging.Word {
			return word(wordStatus, 0, 0, packed(attempt, uint64(ready|phaseInitial), statusBits))
		}
		d.told("a", status(0))
		left := m.ring.attempt
		if !m.running || m.attendant("a").state != placed {
			t.Fatal("no attempt runs")
		}
		m.attendant("a").state = state
		d.told("a", status(left))
		if m.ring.attempt == left || !m.running || m.attendant("a").state != placed {
			t.Errorf("member in state %d: the leader waits with attempt %d", state, left)
		}
	}
}
