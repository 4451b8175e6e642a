package peertest_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/seed-97356399/murmuration/averaging"
)

// TestSimulatedPeersKnowTheirSpeed: where the steps between two exchanges follow the
// speed, a peer that is four times slower makes as many exchanges in a time as it would
// without the straggling, and not a quarter.
func TestSimulatedPeersKnowTheirSpeed(t *testing.T) {
	t.Parallel()
	stepsBetween := func(slow int, bySpeed bool) (steps float64) {
		s := simulation(4)
		s.Work.StepsPerPeer = 4000 // speeds are known after some seconds
		s.Exchange.Pace = averaging.Pace{Every: 16, BySpeed: bySpeed}
		s.World.Compute.Slow = map[int]float64{slow: 4}
		var record bytes.Buffer
		s.Watch.Record = &record
		simulate(t, s)
		counts := map[string]float64{}
		for _, text := range bytes.Split(bytes.TrimSpace(record.Bytes()), []byte("\n")) {
			var line struct {
				Did  string
				Peer int
			}
			if err := json.Unmarshal(text, &line); err != nil {
				t.Fatal(err)
			}
			if line.Peer == slow {
				counts[line.Did]++
			}
		}
		if counts["propose"] == 0 {
			return 0 // it is passive
		}
		return counts["step"] / counts["propose"]
	}
	active := 0
	for slow := range 4 {
		even := stepsBetween(slow, false)
		if even == 0 {
			continue
		}
		active++
		scaled := stepsBetween(slow, true)
		t.Logf("peer %d proposes every %.1f steps, by its speed every %.1f", slow, even, scaled)
		// Its speed is 1 to 13/4, that of all in the mean.
		if even < 11 || scaled > even/2 {
			t.Errorf("peer %d proposes every %.1f steps, by its speed every %.1f", slow, even, scaled)
		}
	}
	if active == 0 {
		t.Error("nobody is active")
	}
}
