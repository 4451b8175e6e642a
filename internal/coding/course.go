package coding

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Course is a percentage over the progress of a run, from 0 to 1: straight lines between its
// points, and as at the first before it and as at the last after it.
type Course []Point

// Point is a percentage at some progress.
type Point struct {
	Percent  int
	Progress float64
}

// maxPoints bounds the points of a course.
const maxPoints = 16

// ParseCourse reads a percentage, such as 50, or points in the order of their progress, such
// as 0@0,100@0.3.
func ParseCourse(text string) (Course, error) {
	var course Course
	for _, point := range strings.Split(text, ",") {
		percent, progress, timed := strings.Cut(strings.TrimSpace(point), "@")
		n, err := strconv.Atoi(strings.TrimSuffix(percent, "%"))
		at, last := 0.0, 0.0
		if timed && err == nil {
			at, err = strconv.ParseFloat(progress, 64)
		}
		if len(course) > 0 {
			last = course[len(course)-1].Progress
		}
		if err != nil || n < 0 || n > 100 || !(at >= last && at <= 1) || len(course) == maxPoints || !timed && text != point {
			return nil, fmt.Errorf("%q: want 0 to 100 percent, or up to %d points of the run in order, as in 0@0,100@0.3", text, maxPoints)
		}
		course = append(course, Point{n, at})
	}
	return course, nil
}

// At is the percentage at a progress.
func (c Course) At(progress float64) int {
	before := c[0]
	for _, p := range c {
		if progress < p.Progress {
			share := max(progress-before.Progress, 0) / max(p.Progress-before.Progress, 1e-9)
			return before.Percent + int(math.Round(share*float64(p.Percent-before.Percent)))
		}
		before = p
	}
	return before.Percent
}
