package ops

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Shape is the size of a picture.
type Shape struct{ Height, Width, Channels int }

// Len is the number of values in a picture.
func (s Shape) Len() int { return s.Height * s.Width * s.Channels }

// Pixels is the number of pixels in a picture.
func (s Shape) Pixels() int { return s.Height * s.Width }

// MaxSide and MaxChannels bound a Shape, so that no product of its sizes
// overflows.
const (
	MaxSide     = 1 << 12
	MaxChannels = 1 << 16
)

func (s Shape) mustBeSound(what string) {
	if s.Height < 1 || s.Height > MaxSide || s.Width < 1 || s.Width > MaxSide || s.Channels < 1 || s.Channels > MaxChannels {
		panic(fmt.Sprintf("%s of pictures of %v", what, s))
	}
}

// pictures returns how many pictures, or rows, of size values are in a vector of length values.
func pictures(op string, length, size int) int {
	if size <= 0 || length%size != 0 {
		panic(fmt.Sprintf("ops: %s of %d values, in parts of %d", op, length, size))
	}
	return length / size
}

func wantLen(op string, got, want int) {
	if got != want {
		lengthPanic(op, got, want)
	}
}

func lengthPanic(op string, got, want int) {
	panic(fmt.Sprintf("ops: %s of %d values where the others ask for %d", op, got, want))
}

// part returns part i of v, where each part has size values.
func part(v tensor.Vector, i, size int) tensor.Vector { return v[i*size : (i+1)*size : (i+1)*size] }
