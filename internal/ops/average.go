package ops

import (
	"github.com/seed-97356399/murmuration/internal/kernel"
	"github.com/seed-97356399/murmuration/tensor"
)

// GlobalAverage sets out to the mean over the pixels of each picture, channel by
// channel.
func GlobalAverage(out, in tensor.Vector, s Shape) {
	n := pictures("GlobalAverage", len(in), s.Len())
	wantLen("GlobalAverage", len(out), n*s.Channels)
	clear(out)
	for i := range n {
		kernel.SumRows(part(out, i, s.Channels), part(in, i, s.Len()))
	}
	kernel.Scale(out, 1/float32(s.Pixels()))
}

// GlobalAverageGradient sets below, the gradient over the pictures, from that over
// their means.
func GlobalAverageGradient(below, errors tensor.Vector, s Shape) {
	n := pictures("GlobalAverageGradient", len(below), s.Len())
	wantLen("GlobalAverageGradient", len(errors), n*s.Channels)
	share := 1 / float32(s.Pixels())
	for i := range n {
		picture := part(below, i, s.Len())
		first := picture[:s.Channels]
		copy(first, part(errors, i, s.Channels))
		kernel.Scale(first, share)
		for done := s.Channels; done < len(picture); done *= 2 {
			copy(picture[done:], picture[:done])
		}
	}
}
