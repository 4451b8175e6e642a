package main

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/gallery/gallerytest"
)

func TestRuns(t *testing.T) {
	out := gallerytest.Run(t, run)
	var together, alone [services]float64
	gallerytest.Scan(t, out, "AUC on the next month of all: together [%f %f %f %f] at each service, alone [%f %f %f %f]", &together[0], &together[1], &together[2], &together[3], &alone[0], &alone[1], &alone[2], &alone[3])
	for i := range services {
		if together[i] != together[0] || together[i] < 0.95 || alone[i] > together[i]-0.05 {
			t.Errorf("service %d: AUC %f, alone %f", i+1, together[i], alone[i])
		}
	}
}
