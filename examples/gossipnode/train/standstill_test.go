package train

import (
	"testing"
	"time"
)

// TestStandstill shows that a peer which slept until the others had gone says so, once,
// and that slow steps, a short sleep, and being alone by itself are no reason.
func TestStandstill(t *testing.T) {
	const step = 100 * time.Millisecond
	for name, c := range map[string]struct {
		step, gap     time.Duration
		members, most int
		news          bool
	}{
		"slept, and all have gone":     {step, time.Minute, 1, 4, true},
		"slept, and others are there":  {step, time.Minute, 2, 4, false},
		"slept, and was always alone":  {step, time.Minute, 1, 1, false},
		"a short sleep":                {step, 9 * time.Second, 1, 4, false},
		"no sleep":                     {step, step, 1, 4, false},
		"steps that take long anyway":  {8 * time.Second, time.Minute, 1, 4, false},
		"a long sleep with such steps": {8 * time.Second, time.Hour, 1, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s standstill
			now := time.Now()
			for range 50 {
				s.step(now)
				now = now.Add(c.step)
			}
			now = now.Add(c.gap - c.step)
			for range 50 {
				s.step(now)
				now = now.Add(c.step)
			}
			stood, news := s.alone(c.members, c.most)
			if news != c.news || news && stood != c.gap {
				t.Errorf("%v after %s, want %v", news, stood, c.news)
			}
			if _, again := s.alone(c.members, c.most); again {
				t.Error("it is told twice")
			}
		})
	}
}
