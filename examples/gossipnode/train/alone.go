package train

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// leastStandstill is the least time of a standstill, as when the machine sleeps, after which
// the others may have given this peer up, or ended without it.
const leastStandstill = 10 * time.Second

// warnAlone warns the user, once, that the process may have slept through the end of the run.
// The peer itself cannot find out, since there is no member left to ask.
func warnAlone(t *training, s stats.Peer) {
	if stood := s.Exchanges.LongestHold; !t.alone && s.Members <= 1 && t.members > 1 && stood >= leastStandstill {
		t.alone = true
		t.Log.Warn("this process stood still, and all others have gone: it trains on alone, from the model it had. If they have finished the run, end this peer (Ctrl-C) and take the model of one of them",
			zap.Duration("stood_still", stood), zap.Int("others", t.members-1))
	}
}
