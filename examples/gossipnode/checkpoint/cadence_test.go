package checkpoint

import (
	"testing"
	"time"
)

// TestCadence shows what --checkpoint-every takes, and when each is due.
func TestCadence(t *testing.T) {
	began := moment{at: time.Unix(1000, 0), steps: 50, flockSteps: 200}
	after := func(d time.Duration, steps, flock uint64) moment {
		return moment{at: began.at.Add(d), steps: began.steps + steps, flockSteps: began.flockSteps + flock}
	}
	const epoch = 100
	for text, c := range map[string]struct{ early, due moment }{
		"auto":  {after(59*time.Second, 90, 99), after(0, 1, 100)},
		"1m30s": {after(89*time.Second, 1e6, 1e6), after(90*time.Second, 0, 0)},
		"2e":    {after(time.Hour, 1e6, 199), after(0, 0, 200)},
		"0.5e":  {after(time.Hour, 1e6, 49), after(0, 0, 50)},
		"500":   {after(time.Hour, 499, 1e6), after(0, 500, 0)},
		"end":   {after(time.Hour, 1e6, 1e6), moment{}},
	} {
		every, err := ParseCadence(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if every.due(began, c.early, epoch) {
			t.Errorf("%s is due too early", text)
		}
		if text != cadenceEnd && !every.due(began, c.due, epoch) {
			t.Errorf("%s is not due", text)
		}
	}
	auto, _ := ParseCadence("auto")
	if !auto.due(began, after(time.Minute, 0, 0), epoch) {
		t.Error("auto is not due after a minute")
	}
	for _, text := range []string{"", "0", "-5", "0s", "-1m", "0e", "-1e", "NaNe", "Infe", "1.5", "often"} {
		if _, err := ParseCadence(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
