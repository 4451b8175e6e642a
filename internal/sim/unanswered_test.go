package sim_test

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/internal/collective"
	"github.com/seed-97356399/murmuration/internal/sim"
)

// TestOffersThatNobodyAnswersAreRefused: a machine that knows no such request has said no,
// at once, as with real peers.
func TestOffersThatNobodyAnswersAreRefused(t *testing.T) {
	f, a, b := scriptedPair(t, transferLink, collective.Action{}, sim.Hooks{})
	b.says = nil
	f.world.Run(500 * time.Millisecond)
	if e, refused := a.has(averaging.Refused, false); !refused || e.Reason != averaging.Round {
		t.Errorf("the sender knows %v", a.seen)
	}
}
