package dataset

import "context"

// MixedSide is the default width and height of pictures when their sizes differ.
const MixedSide = 64

// maxSized bounds the number of pictures that decide the shape of a set.
const maxSized = 256

// usualShape is the shape of the set's pictures. Its size is the given one, else that of more than half of the
// pictures, else MixedSide (also if the size is too large for a set). It is grey if more than half of the pictures
// are. It looks at pictures evenly spread over all files, so peers with the same files get the same shape.
func (x *index) usualShape(ctx context.Context, width, height int, found *findings) (Shape, error) {
	s := shapes{decoder: x.source.newDecoder(), sizes: make(map[[2]int]int)}
	if err := x.eachOf(ctx, x.spread(maxSized), &developer{decoder: &s}, found, func(uint8, []uint8) {}); err != nil {
		return Shape{}, err
	}
	shape := Shape{Height: MixedSide, Width: MixedSide, Channels: 3}
	for size, n := range s.sizes {
		if 2*n > s.all && size[0]*size[1] <= MaxPixels {
			shape.Width, shape.Height = size[0], size[1]
		}
	}
	if width > 0 {
		shape.Width, shape.Height = width, height
	}
	if 2*s.grey > s.all {
		shape.Channels = 1
	}
	return shape, nil
}

// shapes is a decoder that reads only headers, and counts the shapes.
type shapes struct {
	decoder
	sizes     map[[2]int]int // by width and height
	grey, all int
}

func (s *shapes) decode(_ []uint8, _ Shape, packed []byte) (resized bool, err error) {
	shape, err := s.decoder.shape(packed)
	if err != nil {
		return false, err
	}
	s.sizes[[2]int{shape.Width, shape.Height}]++
	s.all++
	if shape.Channels == 1 {
		s.grey++
	}
	return false, nil
}
