package train

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// leastStandstill is for how long a process must have stood still, its machine asleep, for
// the others to have given this peer up, or to have ended without it.
const leastStandstill = 10 * time.Second

// warnAlone says, once, what a user should know whose process has slept through the end:
// the peer cannot, since there is nobody to ask.
func warnAlone(t *training, s stats.Peer) {
	if stood := s.Exchanges.LongestHold; !t.alone && s.Members <= 1 && t.members > 1 && stood >= leastStandstill {
		t.alone = true
		t.Log.Warn("this process stood still, and all others have gone: it trains on alone, from the model it had. If they have finished the run, end this peer (Ctrl-C) and take the model of one of them",
			zap.Duration("stood_still", stood), zap.Int("others", t.members-1))
	}
}
