package dataset

import (
	"hash/fnv"
	"image"
	"image/color"
	"slices"
	"testing"
)

// greyOf is a grey picture of these levels.
func greyOf(width int, levels ...uint8) *image.Gray {
	return &image.Gray{Pix: levels, Stride: width, Rect: image.Rect(0, 0, width, len(levels)/width)}
}

// TestResize compares resized pictures with values computed by hand.
func TestResize(t *testing.T) {
	for name, c := range map[string]struct {
		picture       *image.Gray
		width, height int
		want          []uint8
	}{
		"halved":             {greyOf(4, 10, 20, 30, 40, 50, 60, 70, 80), 2, 1, []uint8{35, 55}},
		"two thirds":         {greyOf(3, 30, 60, 90, 30, 60, 90, 30, 60, 90), 2, 2, []uint8{40, 80, 40, 80}},
		"doubled":            {greyOf(2, 1, 2, 3, 4), 4, 4, []uint8{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}},
		"cropped":            {greyOf(6, 9, 9, 1, 2, 9, 9, 9, 9, 3, 4, 9, 9), 2, 2, []uint8{1, 2, 3, 4}},
		"cropped in height":  {greyOf(1, 9, 7, 9), 1, 1, []uint8{7}},
		"rounded":            {greyOf(2, 0, 1, 1, 1), 1, 1, []uint8{1}},
		"a line to a square": {greyOf(5, 0, 0, 8, 0, 0), 2, 2, []uint8{8, 8, 8, 8}},
	} {
		got := make([]uint8, c.width*c.height)
		if !fit(got, Shape{c.height, c.width, 1}, c.picture) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestResizeKeepsLevels shows that a picture of one colour keeps it in every size, in
// colours and in grey.
func TestResizeKeepsLevels(t *testing.T) {
	picture := image.NewNRGBA(image.Rect(3, 4, 3+37, 4+23))
	for i := 0; i < len(picture.Pix); i += 4 {
		copy(picture.Pix[i:], []uint8{200, 33, 254, 255})
	}
	grey := color.GrayModel.Convert(picture.At(5, 5)).(color.Gray).Y
	for _, size := range []image.Point{{1, 1}, {5, 7}, {64, 64}, {37, 23}, {38, 22}, {200, 3}} {
		three, one := make([]uint8, 3*size.X*size.Y), make([]uint8, size.X*size.Y)
		fit(three, Shape{size.Y, size.X, 3}, picture)
		fit(one, Shape{size.Y, size.X, 1}, picture)
		for i, level := range one {
			if level != grey || !slices.Equal(three[3*i:3*i+3], []uint8{200, 33, 254}) {
				t.Fatalf("%v: pixel %d is %d and %d, want %d", size, i, three[3*i:3*i+3], level, grey)
			}
		}
	}
}

// TestResizeIsExact shows that all processors find the same values: those of a machine
// on which this was recorded, of a PNG and of a JPEG.
func TestResizeIsExact(t *testing.T) {
	sum := fnv.New64a()
	var d pictureDecoder
	for _, packed := range [][]byte{asPNG(t, noise(3, 211, 157)), asJPEG(t, noise(4, 90, 331))} {
		for _, shape := range []Shape{{64, 64, 3}, {64, 64, 1}, {100, 30, 3}, {300, 400, 1}} {
			pixels := make([]uint8, shape.Values())
			if resized, err := d.decode(pixels, shape, packed); err != nil || !resized {
				t.Fatalf("%v: resized: %v, %v", shape, resized, err)
			}
			_, _ = sum.Write(pixels)
		}
	}
	if got, want := sum.Sum64(), uint64(0x36e3d02dd765696); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}
