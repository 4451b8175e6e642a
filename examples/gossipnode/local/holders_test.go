package local

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/examples/gossipnode/result"
)

// TestRowsThatTravelAddUp: holders tell what they have handed out; of one that was lost the accounts of those that took its rows
// count, and of one that tells they do not.
func TestRowsThatTravelAddUp(t *testing.T) {
	count := func(handed, trained, lost uint64) result.Travelled {
		return result.Travelled{HandedOut: handed, TrainedSamples: trained, LostSamples: lost}
	}
	alive := count(100, 90, 10)
	held := []result.Share{{Result: result.Result{Peer: "alive", Travelled: &alive, BytesSent: 7}}}
	shares := []result.Share{
		{Taken: map[string]result.Travelled{"alive": count(60, 60, 0), "dead": count(20, 15, 5)}},
		{Taken: map[string]result.Travelled{"alive": count(30, 30, 0), "dead": count(10, 10, 0)}},
	}
	total := result.Result{BytesSent: 5, Travelled: &alive, TestAccuracy: result.AccuracyOf(math.NaN())}
	travelled(&total, shares, held, 2)
	if got := *total.Travelled; got.Holders != 2 || got.HandedOut != 130 || got.TrainedSamples != 115 || got.LostSamples != 15 || total.BytesSent != 12 {
		t.Errorf("%+v, and %d bytes", got, total.BytesSent)
	}
	travelled(&total, shares, nil, 0)
	if total.Travelled != nil {
		t.Error("nobody held rows, and rows are counted")
	}
}
