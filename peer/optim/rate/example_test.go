package rate_test

import (
	"fmt"

	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

// Schedules follow the progress of the whole flock, not that of one peer.
func ExampleSchedule_RateAt() {
	s := rate.Schedule{Rate: 0.1, Warmup: 0.1}
	for _, progress := range []float64{0.05, 0.1, 0.55, 1} {
		fmt.Printf("%.3f ", s.RateAt(progress))
	}
	// Output: 0.050 0.100 0.050 0.000
}
