package main

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gallery/gallerytest"
)

func TestRuns(t *testing.T) {
	out := gallerytest.Run(t, run)
	var before, after float64
	var questions int
	gallerytest.Scan(t, out, "answers right: %f %% before it learned, %f %% after; %d questions", &before, &after, &questions)
	if before > 40 || after < 80 || questions < 3 {
		t.Error(out)
	}
}
