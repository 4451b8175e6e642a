package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
)

// pictureDecoder decodes JPEG and PNG. Transparent pictures get a black background.
type pictureDecoder struct {
	reader bytes.Reader
}

// errFormat is one reason of an ErrPicture.
var errFormat = errors.New("neither JPEG nor PNG")

// Signatures of the formats; the name of a file does not matter.
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

// decode converts colours to the channels of shape: a grey set takes the brightness of a coloured picture. A picture
// of another size is cropped to its middle and resized.
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
	return fit(pixels, shape, picture), nil
}
