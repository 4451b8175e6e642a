package peer

import (
	"testing"
	"time"
)

// TestAProcessThatStandsStillIsNoticed by beats that come late, and a scheduler that is a
// little late is not.
func TestAProcessThatStandsStillIsNoticed(t *testing.T) {
	var p pulse
	now := time.Now()
	for i, c := range []struct{ after, want time.Duration }{
		{time.Hour, 0}, // the first
		{pulseEvery, 0},
		{pulseEvery + pulseEvery/2, 0},
		{0, 0},
		{pulseEvery + 20*time.Second, 20 * time.Second},
		{pulseEvery, 0},
		{pulseEvery + 3*time.Second, 3 * time.Second},
	} {
		now = now.Add(c.after)
		if stood := p.beat(now); stood != c.want {
			t.Errorf("beat %d: stood still for %s, want %s", i, stood, c.want)
		}
	}
}
