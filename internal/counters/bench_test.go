package counters

import (
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/internal/coding"
)

// BenchmarkCounting measures what counting costs that nobody can turn off: all that is
// added up for metrics in a step, and in an exchange.
func BenchmarkCounting(b *testing.B) {
	t := New()
	b.Run("step", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.Stepped(time.Microsecond)
			t.Learned(1, 0.1, 1)
		}
	})
	b.Run("exchange", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			t.Answered(time.Millisecond)
			t.Completed(Completed{Values: 100, Bytes: 400, Took: time.Millisecond, Steps: 3})
			t.Distance(1)
			t.Moved(coding.Raw, 1000, 1000)
		}
	})
}

// TestCountingTakesNoMemory once a codec or a cause has been counted.
func TestCountingTakesNoMemory(t *testing.T) {
	c := New()
	if n := testing.AllocsPerRun(100, func() {
		c.Stepped(time.Microsecond)
		c.Learned(1, 0.1, 1)
		c.Completed(Completed{Values: 100, Bytes: 400, Took: time.Millisecond, Steps: 3})
		c.Moved(coding.Raw, 1000, 1000)
		c.Refused(1)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
