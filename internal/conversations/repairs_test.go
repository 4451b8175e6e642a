package conversations

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestRepairsAskAgainLessOften: the first question comes after repairFirst, and each
// further one after twice the time, one at a time; who answers none is silent, until
// nothing was in doubt with it for a while.
func TestRepairsAskAgainLessOften(t *testing.T) {
	var r repairs
	now := time.Unix(0, 0)
	const partner = transport.PeerID("liar")
	doubts := []string{string(partner)}
	wait := repairFirst
	for question := range maxUnanswered + 4 {
		if got := r.silent(partner, now); got != (question >= maxUnanswered) {
			t.Errorf("after %d questions, silent is %v", question, got)
		}
		if r.due(doubts, now); len(r.due(doubts, now.Add(wait-1))) > 0 {
			t.Errorf("question %d comes before %s", question, wait)
		}
		now = now.Add(wait)
		if ask := r.due(doubts, now); len(ask) != 1 || ask[0] != partner {
			t.Fatalf("question %d after %s is for %v", question, wait, ask)
		}
		if again := r.due(doubts, now.Add(time.Millisecond)); len(again) > 0 {
			t.Error("a second question while the first is under way")
		}
		r.asked(partner, now)
		wait = min(2*wait, repairMost)
	}
	r.due(nil, now)
	if now = now.Add(doubtRest * doubtMost); r.silent(partner, now) {
		t.Error("silent though nothing was in doubt for long")
	}
}
