package peer_test

import (
	"math"
	"testing"

	"github.com/seed-97356399/murmuration/peer"
)

func TestScheduleFollowsItsShape(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule peer.Schedule
		progress float64
		want     float64
	}{
		{"default", peer.Schedule{}, 0, peer.DefaultRate},
		{"cosine begins at the full rate", peer.Schedule{Rate: 2}, 0, 2},
		{"cosine is at half in the middle", peer.Schedule{Rate: 2}, 0.5, 1},
		{"cosine ends at zero", peer.Schedule{Rate: 2}, 1, 0},
		{"beyond the end it stays", peer.Schedule{Rate: 2}, 7, 0},
		{"warm-up begins near zero", peer.Schedule{Rate: 2, Warmup: 0.1}, 0, 0.02},
		{"warm-up is a straight line", peer.Schedule{Rate: 2, Warmup: 0.1}, 0.05, 1},
		{"warm-up ends at the full rate", peer.Schedule{Rate: 2, Warmup: 0.1}, 0.1, 2},
		{"cosine takes what the warm-up leaves", peer.Schedule{Rate: 2, Warmup: 0.2}, 0.6, 1},
		{"constant", peer.Schedule{Rate: 2, Shape: peer.Constant}, 0.9, 2},
		{"before a milestone", peer.Schedule{Rate: 2, Shape: peer.Stepped, At: []float64{0.5, 0.8}}, 0.49, 2},
		{"at a milestone", peer.Schedule{Rate: 2, Shape: peer.Stepped, At: []float64{0.5, 0.8}}, 0.5, 0.2},
		{"after two", peer.Schedule{Rate: 2, Shape: peer.Stepped, At: []float64{0.5, 0.8}, Factor: 0.5}, 0.9, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.schedule.RateAt(c.progress); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("rate %g, want %g", got, c.want)
			}
		})
	}
}
