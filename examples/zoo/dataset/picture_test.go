package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"
)

func TestDecodePNG(t *testing.T) {
	var d pictureDecoder
	for _, side := range []int{5, 9, 5} {
		picture := noise(uint64(side), side, side+1)
		packed := asPNG(t, picture)
		shape, err := d.shape(packed)
		if want := (Shape{side, side + 1, 3}); err != nil || shape != want {
			t.Fatalf("shape %v, %v, want %v", shape, err, want)
		}
		pixels := make([]uint8, shape.Values())
		if _, err := d.decode(pixels, shape, packed); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(pixels, levelsOf(picture)) {
			t.Errorf("side %d: other pixels", side)
		}
	}
}

// A decoded JPEG of a smooth picture is near the original.
func TestDecodeJPEG(t *testing.T) {
	picture := image.NewNRGBA(image.Rect(0, 0, 32, 24))
	for y := range 24 {
		for x := range 32 {
			picture.SetNRGBA(x, y, color.NRGBA{uint8(8 * x), uint8(100 + 5*y), uint8(250 - 7*x), 255})
		}
	}
	var d pictureDecoder
	pixels := make([]uint8, 24*32*3)
	if _, err := d.decode(pixels, Shape{24, 32, 3}, asJPEG(t, picture)); err != nil {
		t.Fatal(err)
	}
	for i, want := range levelsOf(picture) {
		if diff := abs(int(pixels[i]) - int(want)); diff > 25 {
			t.Fatalf("value %d is %d, want about %d", i, pixels[i], want)
		}
	}
}

// A decoded picture has the channels of the set, whatever channels its file has.
func TestDecodeChannels(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 3, 2))
	copy(grey.Pix, []uint8{0, 50, 100, 150, 200, 250})
	var d pictureDecoder
	packed := asPNG(t, grey)
	if shape, err := d.shape(packed); err != nil || shape != (Shape{2, 3, 1}) {
		t.Errorf("shape %v, %v", shape, err)
	}
	one, three := make([]uint8, 6), make([]uint8, 18)
	if _, err := d.decode(one, Shape{2, 3, 1}, packed); err != nil || !slices.Equal(one, grey.Pix) {
		t.Errorf("grey: %v, %v", one, err)
	}
	if _, err := d.decode(three, Shape{2, 3, 3}, packed); err != nil || three[3] != 50 || three[4] != 50 || three[17] != 250 {
		t.Errorf("grey in a set of colours: %v, %v", three, err)
	}
	coloured := image.NewNRGBA(grey.Rect)
	for i := 0; i < len(coloured.Pix); i += 4 {
		copy(coloured.Pix[i:], []uint8{80, 80, 80, 255})
	}
	if _, err := d.decode(one, Shape{2, 3, 1}, asPNG(t, coloured)); err != nil || one[0] != 80 || one[5] != 80 {
		t.Errorf("colours in a grey set: %v, %v", one, err)
	}
	coloured.SetNRGBA(0, 0, color.NRGBA{255, 255, 255, 0})
	if _, err := d.decode(three, Shape{2, 3, 3}, asPNG(t, coloured)); err != nil || three[0] != 0 || three[3] != 80 {
		t.Errorf("transparency: %v, %v", three, err)
	}
}

// bigPNG claims to be large; nothing of it is there but the header.
func bigPNG(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	header = append(binary.BigEndian.AppendUint32(header, height), 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	return binary.BigEndian.AppendUint32(append(out, header...), crc32.ChecksumIEEE(header))
}

func TestDecodeRefuses(t *testing.T) {
	fine := asPNG(t, noise(1, 4, 4))
	damaged := bytes.Clone(fine)
	damaged[len(damaged)/2] ^= 1
	photo := asJPEG(t, noise(1, 4, 4))
	for name, c := range map[string]struct {
		packed []byte
		want   string
	}{
		"nothing":        {nil, "neither JPEG nor PNG"},
		"text":           {[]byte("GIF89a and so on"), "neither JPEG nor PNG"},
		"PNG cut":        {fine[:len(fine)/2], "pixel data"},
		"PNG damaged":    {damaged, "png"},
		"JPEG cut":       {photo[:len(photo)-5], "JPEG"},
		"too large":      {bigPNG(1<<15, 1<<15), "want at most"},
		"far too large":  {bigPNG(1<<31-1, 1<<31-1), ""},
		"just too large": {bigPNG(MaxRecordPixels+1, 1), "want at most"},
	} {
		var d pictureDecoder
		_, err := d.decode(make([]uint8, 48), Shape{4, 4, 3}, c.packed)
		if !errors.Is(err, ErrPicture) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Whatever the bytes, there is a picture of the size that was asked for, or an
// error that says it is the picture's fault.
func FuzzPicture(f *testing.F) {
	f.Add(asPNG(f, noise(1, 4, 4)))
	f.Add(asJPEG(f, noise(1, 4, 4)))
	f.Add(bigPNG(1<<15, 1<<15))
	f.Add([]byte("GIF89a"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		var d pictureDecoder
		for _, channels := range []int{1, 3} {
			want := Shape{4, 4, channels}
			resized, err := d.decode(make([]uint8, want.Values()), want, packed)
			if err != nil && !errors.Is(err, ErrPicture) {
				t.Fatal(err)
			}
			if shape, seen := d.shape(packed); err == nil && (seen != nil || resized != (shape.Height != 4 || shape.Width != 4)) {
				t.Fatalf("a picture of shape %v, %v, resized: %v", shape, seen, resized)
			}
		}
	})
}
