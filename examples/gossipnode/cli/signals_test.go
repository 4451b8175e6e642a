package cli

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestASecondSignalCountsLater: two that come together, as of GNU timeout, ask once; one that
// comes a second later, however many came before, ends things at once.
func TestASecondSignalCountsLater(t *testing.T) {
	for name, c := range map[string]struct {
		at           []time.Duration // after the one before
		first, again int
	}{
		"none":                   {nil, 0, 0},
		"one":                    {[]time.Duration{time.Hour}, 1, 0},
		"two at once":            {[]time.Duration{0, 3 * time.Millisecond}, 1, 0},
		"many at once":           {[]time.Duration{0, 0, 0, time.Millisecond, repeatAfter / 2}, 1, 0},
		"two":                    {[]time.Duration{0, repeatAfter}, 1, 1},
		"two at once, and later": {[]time.Duration{0, 0, repeatAfter}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, released := make(chan os.Signal, 2), make(chan struct{})
				first, again := 0, 0
				go watchSignals(signals, released, func() { first++ }, func() { again++ })
				for _, after := range c.at {
					time.Sleep(after)
					signals <- os.Interrupt
					synctest.Wait()
				}
				close(released)
				synctest.Wait()
				if first != c.first || again != c.again {
					t.Errorf("asked %d times, ended at once %d times; want %d and %d", first, again, c.first, c.again)
				}
			})
		})
	}
}
