package main

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gallery/gallerytest"
)

func TestRuns(t *testing.T) {
	out := gallerytest.Run(t, run)
	var after, before float64
	var sent, values int
	gallerytest.Scan(t, out, "upside down %f %%, %f %% before; %d of %d values", &after, &before, &sent, &values)
	if after < before+25 || sent != 784*8+8*128 || values != sent+784*128+128+128*10+10 {
		t.Error(out)
	}
}
