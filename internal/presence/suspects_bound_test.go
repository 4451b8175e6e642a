package presence

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/transport"
)

// TestSuspectsAreBounded: however many members are missing, and in whatever order they have
// come to be, no more than the bound are in question.
func TestSuspectsAreBounded(t *testing.T) {
	s := newSuspects()
	now := time.Now()
	var missing []transport.Record
	asked := 0
	for wave := range 4 {
		var fresh []transport.Record
		for i := range maxSuspects {
			fresh = append(fresh, transport.Record{Peer: transport.PeerID(fmt.Sprintf("%d-%03d", 9-wave, i))})
		}
		missing = append(fresh, missing...) // Flock.Missing: in the order of their ids
		if got := s.among(missing, now, func(transport.PeerID) bool { asked++; return true }); len(got) > maxSuspects {
			t.Errorf("wave %d: %d in question, at most %d", wave, len(got), maxSuspects)
		}
	}
	if len(s.known) > maxSuspects || asked != maxSuspects {
		t.Errorf("%d in question, %d asked, want %d", len(s.known), asked, maxSuspects)
	}
}
