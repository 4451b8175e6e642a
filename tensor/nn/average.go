package nn

import "github.com/seed-97356399/murmuration/tensor"

// GlobalAverage sets out to the mean over the pixels of each picture, channel by
// channel, summed in float64.
func GlobalAverage(out, in tensor.Vector, s Shape) {
	n := pictures("GlobalAverage", len(in), s.Len())
	wantLen("GlobalAverage", len(out), n*s.Channels)
	for i := range n {
		for c := range s.Channels {
			total := 0.0
			for p := range s.Pixels() {
				total += float64(in[i*s.Len()+p*s.Channels+c])
			}
			out[i*s.Channels+c] = float32(total / float64(s.Pixels()))
		}
	}
}

// GlobalAverageGradient sets below, the gradient over the pictures, from that over
// their means.
func GlobalAverageGradient(below, errors tensor.Vector, s Shape) {
	n := pictures("GlobalAverageGradient", len(below), s.Len())
	wantLen("GlobalAverageGradient", len(errors), n*s.Channels)
	share := 1 / float32(s.Pixels())
	for i := range n {
		row := errors[i*s.Channels:][:s.Channels]
		for p := range s.Pixels() {
			for c, e := range row {
				below[i*s.Len()+p*s.Channels+c] = e * share
			}
		}
	}
}
