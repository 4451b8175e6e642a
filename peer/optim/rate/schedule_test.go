package rate_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/peer/optim/rate"
)

func TestScheduleFollowsItsShape(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule rate.Schedule
		progress float64
		want     float64
	}{
		{"default", rate.Schedule{}, 0, rate.DefaultRate},
		{"cosine begins at the full rate", rate.Schedule{Rate: 2}, 0, 2},
		{"cosine is at half in the middle", rate.Schedule{Rate: 2}, 0.5, 1},
		{"cosine ends at zero", rate.Schedule{Rate: 2}, 1, 0},
		{"beyond the end it stays", rate.Schedule{Rate: 2}, 7, 0},
		{"warm-up begins near zero", rate.Schedule{Rate: 2, Warmup: 0.1}, 0, 0.02},
		{"warm-up is a straight line", rate.Schedule{Rate: 2, Warmup: 0.1}, 0.05, 1},
		{"warm-up ends at the full rate", rate.Schedule{Rate: 2, Warmup: 0.1}, 0.1, 2},
		{"cosine takes what the warm-up leaves", rate.Schedule{Rate: 2, Warmup: 0.2}, 0.6, 1},
		{"cosine ends at the floor", rate.Schedule{Rate: 2, Floor: 0.1}, 1, 0.2},
		{"cosine is halfway to the floor in the middle", rate.Schedule{Rate: 2, Floor: 0.1}, 0.5, 1.1},
		{"the warm-up begins below the floor", rate.Schedule{Rate: 2, Warmup: 0.1, Floor: 0.5}, 0.01, 0.2},
		{"milestones end at the floor", rate.Schedule{Rate: 2, Shape: rate.Stepped, At: []float64{0.5, 0.8}, Floor: 0.05}, 0.9, 0.1},
		{"constant", rate.Schedule{Rate: 2, Shape: rate.Constant}, 0.9, 2},
		{"before a milestone", rate.Schedule{Rate: 2, Shape: rate.Stepped, At: []float64{0.5, 0.8}}, 0.49, 2},
		{"at a milestone", rate.Schedule{Rate: 2, Shape: rate.Stepped, At: []float64{0.5, 0.8}}, 0.5, 0.2},
		{"after two", rate.Schedule{Rate: 2, Shape: rate.Stepped, At: []float64{0.5, 0.8}, Factor: 0.5}, 0.9, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.schedule.RateAt(c.progress); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("rate %g, want %g", got, c.want)
			}
		})
	}
}

// TestAScheduleWithoutAFloorIsWrittenAsBefore: checkpoints of older builds are compared by text.
func TestAScheduleWithoutAFloorIsWrittenAsBefore(t *testing.T) {
	text, err := json.Marshal(rate.Schedule{Rate: 0.5})
	if want := `{"Rate":0.5,"Warmup":0,"Shape":0,"At":null,"Factor":0}`; err != nil || string(text) != want {
		t.Errorf("%s, %v: want %s", text, err, want)
	}
	if err := (rate.Schedule{Floor: 1.5}).Validate(); err == nil || !strings.Contains(err.Error(), "Floor is 1.5") {
		t.Errorf("a floor of 1.5: %v", err)
	}
}

// TestPartsMakeTheCourse: runs of a half each follow the course of one.
func TestPartsMakeTheCourse(t *testing.T) {
	whole := rate.Schedule{Rate: 2, Warmup: 0.2, Floor: 0.1}
	for _, part := range [][2]float64{{0, 0.1}, {0.1, 0.5}, {0.5, 1}} {
		for _, progress := range []float64{0, 0.3, 1} {
			at := part[0] + progress*(part[1]-part[0])
			if got, want := whole.Part(part[0], part[1]).RateAt(progress), whole.RateAt(at); math.Abs(got-want) > 1e-12 {
				t.Errorf("%v of %v: %g, want %g", progress, part, got, want)
			}
		}
	}
	for _, part := range [][2]float64{{0.5, 0.5}, {-0.1, 1}, {0, 1.1}, {0.5, 0}, {math.NaN(), 1}} {
		if whole.Part(part[0], part[1]).Validate() == nil {
			t.Errorf("a part %v is valid", part)
		}
	}
}
