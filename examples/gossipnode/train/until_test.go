package train

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/stats"
)

// TestForecast: by the time of the first steps, the planned work is done before the deadline or not.
func TestForecast(t *testing.T) {
	s := stats.Peer{Members: 4, Steps: 120, Resumed: 20, FlockSteps: 400, Target: 4000} // 20 ms a step, 18 s more
	if told := forecastOf(s, 2*time.Second, time.Minute); told != "at 20ms a step, 4 peers need about 20 s for the work: the deadline, 1m0s, can be kept" {
		t.Error(told)
	}
	if told := forecastOf(s, 2*time.Second, 5*time.Second); !strings.HasSuffix(told, "the deadline, 5s, comes before, after about 25 % of it: the run stops there") {
		t.Error(told)
	}
}
