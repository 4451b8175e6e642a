package train

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestStandstill shows that a peer which slept until the others had gone says so, once,
// and that a short sleep and being alone by itself are no reason.
func TestStandstill(t *testing.T) {
	for name, c := range map[string]struct {
		stood         time.Duration
		members, most int
		news          int
	}{
		"slept, and all have gone":    {time.Minute, 1, 4, 1},
		"slept, and others are there": {time.Minute, 2, 4, 0},
		"slept, and was always alone": {time.Minute, 1, 1, 0},
		"a short sleep":               {9 * time.Second, 1, 4, 0},
	} {
		core, logged := observer.New(zap.WarnLevel)
		alone := &training{Observer: Observer{Log: zap.New(core)}, seen: seen{members: c.most}}
		s := stats.Peer{Members: c.members}
		s.Exchanges.LongestHold = c.stood
		warnAlone(alone, s)
		warnAlone(alone, s)
		if logged.Len() != c.news {
			t.Errorf("%s: %d warnings, want %d", name, logged.Len(), c.news)
		}
	}
}
