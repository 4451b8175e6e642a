package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
)

// pictureDecoder decodes JPEG and PNG. Pictures with transparency are shown on
// black.
type pictureDecoder struct {
	reader bytes.Reader
	grey   *image.Gray
	colour *image.RGBA
}

// errFormat is one of the reasons in an ErrPicture.
var errFormat = errors.New("neither JPEG nor PNG")

// Signatures of the formats, which count, not a file's name.
var (
	jpegStart = []byte{0xff, 0xd8}
	pngStart  = []byte("\x89PNG")
)

func (d *pictureDecoder) config(packed []byte) (config image.Config, err error) {
	d.reader.Reset(packed)
	switch {
	case bytes.HasPrefix(packed, jpegStart):
		config, err = jpeg.DecodeConfig(&d.reader)
	case bytes.HasPrefix(packed, pngStart):
		config, err = png.DecodeConfig(&d.reader)
	default:
		err = errFormat
	}
	if err != nil {
		return config, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > MaxRecordPixels/config.Height {
		return config, fmt.Errorf("%w: %d×%d pixels, want at most %d", ErrPicture, config.Width, config.Height, MaxRecordPixels)
	}
	return config, nil
}

// shape has one channel for grey pictures and three for all others.
func (d *pictureDecoder) shape(packed []byte) (Shape, error) {
	config, err := d.config(packed)
	if err != nil {
		return Shape{}, err
	}
	shape := Shape{Height: config.Height, Width: config.Width, Channels: 3}
	if config.ColorModel == color.GrayModel || config.ColorModel == color.Gray16Model {
		shape.Channels = 1
	}
	return shape, nil
}

// decode turns colours into the channels that the shape has: of a grey set a
// coloured picture is its brightness. A picture of another size is cropped in its
// middle, and resized.
func (d *pictureDecoder) decode(pixels []uint8, shape Shape, packed []byte) (resized bool, err error) {
	if _, err := d.config(packed); err != nil {
		return false, err
	}
	d.reader.Reset(packed)
	read := jpeg.Decode
	if bytes.HasPrefix(packed, pngStart) {
		read = png.Decode
	}
	picture, err := read(&d.reader)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	switch {
	case picture.Bounds().Size() != image.Pt(shape.Width, shape.Height):
		resize(pixels, shape, picture)
		return true, nil
	case shape.Channels == 1:
		d.toGrey(pixels, picture)
	default:
		d.toColour(pixels, picture)
	}
	return false, nil
}

func (d *pictureDecoder) toGrey(pixels []uint8, picture image.Image) {
	bounds := picture.Bounds()
	grey, ok := picture.(*image.Gray)
	if !ok {
		if d.grey == nil || d.grey.Rect.Size() != bounds.Size() {
			d.grey = image.NewGray(image.Rectangle{Max: bounds.Size()})
		}
		grey = d.grey
		draw.Draw(grey, grey.Rect, picture, bounds.Min, draw.Src)
	}
	width := bounds.Dx()
	for y := range bounds.Dy() {
		copy(pixels[y*width:(y+1)*width], grey.Pix[y*grey.Stride:])
	}
}

func (d *pictureDecoder) toColour(pixels []uint8, picture image.Image) {
	bounds := picture.Bounds()
	if d.colour == nil || d.colour.Rect.Size() != bounds.Size() {
		d.colour = image.NewRGBA(image.Rectangle{Max: bounds.Size()})
	}
	draw.Draw(d.colour, d.colour.Rect, picture, bounds.Min, draw.Src)
	for from, to := 0, 0; from < len(d.colour.Pix); from, to = from+4, to+3 {
		pixels[to], pixels[to+1], pixels[to+2] = d.colour.Pix[from], d.colour.Pix[from+1], d.colour.Pix[from+2]
	}
}
