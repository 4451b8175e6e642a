package peer

import (
	"testing"
	"time"
)

// BenchmarkCounting measures what counting costs that nobody can turn off: all that is
// added up for metrics in a step, and in an exchange.
func BenchmarkCounting(b *testing.B) {
	var c counters
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.blocked.add(time.Microsecond)
			c.learned(Result{Loss: 1, Samples: 1}, 0.1)
		}
	})
	b.Run("exchange", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.tallies.rounds.add(time.Millisecond)
			c.tallies.durations.add(time.Millisecond)
			c.tallies.grew(3)
			c.tallies.moved(0, 1000, 1000)
		}
	})
}
