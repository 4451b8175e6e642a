package talks

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/seam"
)

// TestARationIsForAllStreams: a partner that begins one stream after the other is heard no
// more than on one; another partner has a ration of its own.
func TestARationIsForAllStreams(t *testing.T) {
	var w words
	now := time.Now()
	for _, partner := range []seam.PeerID{"a", "b"} {
		heard := 0
		for range 1000 {
			if w.ration(partner, now).take(now) == 0 {
				heard++
			}
		}
		if heard != wordsAtFirst {
			t.Errorf("%s: %d words heard at once on 1000 streams, want %d", partner, heard, wordsAtFirst)
		}
	}
}
