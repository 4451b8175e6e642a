package counters

import (
	"testing"
	"time"
)

// TestAProcessThatStandsStillIsNoticed by ticks that come late, and a scheduler that is a
// little late is not.
func TestAProcessThatStandsStillIsNoticed(t *testing.T) {
	var p standstill
	now := time.Now()
	for i, c := range []struct{ after, want time.Duration }{
		{time.Hour, 0}, // the first
		{standstillTick, 0},
		{standstillTick + standstillTick/2, 0},
		{0, 0},
		{standstillTick + 20*time.Second, 20 * time.Second},
		{standstillTick, 0},
		{standstillTick + 3*time.Second, 3 * time.Second},
	} {
		now = now.Add(c.after)
		if stood := p.tick(now); stood != c.want {
			t.Errorf("tick %d: stood still for %s, want %s", i, stood, c.want)
		}
	}
}
