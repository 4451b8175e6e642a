package dataset

// MixedSide is the width and the height that pictures of mixed sizes are brought to,
// unless somebody says another.
const MixedSide = 64

// maxSized bounds the number of pictures from which the shape of a set is taken.
const maxSized = 256

// usualShape is the shape that pictures are brought to: the size is the one given, or that
// of more than half of them, or MixedSide where there is no such, or none that a set may
// have; they are grey if more than half of them are. It looks at pictures that are evenly
// spread over all files, as peers with the same files do.
func (x *index) usualShape(width, height int, found *findings) (Shape, error) {
	s := shapes{decoder: x.source.newDecoder(), sizes: make(map[[2]int]int)}
	if err := x.eachOf(x.spread(maxSized), &developer{decoder: &s}, found, func(uint8, []uint8) {}); err != nil {
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

// shapes is a decoder that looks at headers only, and counts the shapes that it sees.
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
