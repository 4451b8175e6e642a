package main

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gallery/gallerytest"
)

func TestRuns(t *testing.T) {
	out := gallerytest.Run(t, run)
	var machine, stage, values, all int
	var accuracy float64
	gallerytest.Scan(t, out, "machine %d, stage %d: %d values; %d values in all; the whole model reads %f %%", &machine, &stage, &values, &all, &accuracy)
	if first := 784*256 + 256; stage == 1 && values != first || stage == 2 && values != all-first || values >= all || accuracy < 70 {
		t.Error(out)
	}
}
