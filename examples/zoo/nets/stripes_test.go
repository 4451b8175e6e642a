package nets

import (
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
	"github.com/seed-97356399/murmuration/examples/zoo/internal/seeded"
)

// stripesClasses is how many classes there are of stripes: four directions by two
// colours.
const stripesClasses = 8

// stripes are coloured pictures whose class is the direction of their stripes and
// the colour that these have more of; phase, width, brightness and noise are random.
// No single pixel tells anything.
func stripes(t testing.TB, seed uint64, count, side int) *dataset.Set {
	t.Helper()
	rng := seeded.Rand(seed, seeded.Order, 0)
	shape := dataset.Shape{Height: side, Width: side, Channels: 3}
	pixels := make([]uint8, 0, count*shape.Values())
	labels := make([]uint8, count)
	for i := range labels {
		class := rng.IntN(stripesClasses)
		labels[i] = uint8(class)
		phase, width := rng.IntN(side), 2+rng.IntN(2)
		low, high := 40+rng.IntN(60), 140+rng.IntN(80)
		for y := range side {
			for x := range side {
				along := [4]int{x, y, x + y, x + side - y}[class%4]
				level := low
				if (along+phase)/width%2 == 1 {
					level = high
				}
				pixel := [3]int{level, level, level}
				pixel[class/4*2] += 30
				for _, v := range pixel {
					pixels = append(pixels, uint8(max(0, min(255, v+rng.IntN(61)-30))))
				}
			}
		}
	}
	set, err := dataset.NewSet(pixels, labels, shape, stripesClasses, dataset.Normalization{Mean: 0.5, Scale: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
