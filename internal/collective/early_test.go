package collective

import (
	"fmt"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
	"github.com/seed-97356399/murmuration/topology"
)

// TestWhoComesTooEarlyIsBounded: members that come and go, each with an offer for a sum that this peer takes no part in, are refused, and
// few of them are remembered.
func TestWhoComesTooEarlyIsBounded(t *testing.T) {
	a := attempt{Flights: &Flights{}}
	for i := range 4 * maxEarly {
		a.Begin(0, nil)
		a.offered(Event{Event: averaging.Event{Peer: topology.PeerID(fmt.Sprint(i)), Exchange: 1}, Transfer: Transfer{From: Sum, Into: Sum, Parts: 2, Round: 7}})
		if done := a.End(); len(done) != 1 || done[0].Kind != averaging.Refuse || done[0].Reason != averaging.Round {
			t.Fatalf("offer %d is answered by %v", i, done)
		}
	}
	if len(a.early) != maxEarly {
		t.Errorf("%d are remembered, at most %d may be", len(a.early), maxEarly)
	}
}
