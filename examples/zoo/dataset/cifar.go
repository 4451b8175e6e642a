package dataset

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
)

// cifarShape is the shape of a picture of CIFAR-10.
var cifarShape = Shape{Height: 32, Width: 32, Channels: 3}

// cifarPixels is the number of pixels of a picture, cifarRecord the bytes of a
// record: the label, then the red, green and blue values of all pixels.
const (
	cifarPixels = 32 * 32
	cifarRecord = 1 + 3*cifarPixels
)

// cifarBatches are the binary batches of CIFAR-10.
type cifarBatches struct{ paths []string }

func (b cifarBatches) files() int           { return len(b.paths) }
func (b cifarBatches) path(i int) string    { return b.paths[i] }
func (b cifarBatches) parts(i int) []string { return b.paths[i : i+1] }
func (cifarBatches) newDecoder() decoder    { return cifarDecoder{} }

func (b cifarBatches) open(i int, labels bool) (recordReader, error) {
	file, err := os.Open(b.paths[i])
	if err != nil {
		return nil, err
	}
	r := newCIFARReader(b.paths[i], file)
	r.file = file
	return r, nil
}

// cifarReader reads the records of one batch. If only the labels are wanted, it
// reads the pictures, too: to skip three kilobytes is not faster.
type cifarReader struct {
	path string
	file io.Closer
	from *bufio.Reader
	data [cifarRecord]byte
	at   int // the number of the next record
}

func newCIFARReader(path string, from io.Reader) *cifarReader {
	return &cifarReader{path: path, from: bufio.NewReaderSize(from, 1<<16)}
}

func (r *cifarReader) Close() error { return r.file.Close() }

func (r *cifarReader) next(rec *record) error {
	label, planes, err := r.cut()
	if err != nil {
		return err
	}
	if label >= Classes {
		return &RecordError{
			Path: r.path, Key: strconv.Itoa(r.at - 1),
			Err: fmt.Errorf("%w: %d, want less than %d", ErrLabel, label, Classes),
		}
	}
	*rec = record{label: label, packed: planes}
	return nil
}

// cut reads the next record. It returns io.EOF at the end, if no record was cut off.
func (r *cifarReader) cut() (label uint8, planes []byte, err error) {
	switch _, err := io.ReadFull(r.from, r.data[:]); err {
	case nil:
		r.at++
		return r.data[0], r.data[1:], nil
	case io.EOF:
		return 0, nil, io.EOF
	default:
		return 0, nil, explain(err)
	}
}

// cifarDecoder puts the channels of a pixel side by side.
type cifarDecoder struct{}

func (cifarDecoder) shape([]byte) (Shape, error) { return cifarShape, nil }

func (cifarDecoder) decode(pixels []uint8, shape Shape, planes []byte) (resized bool, err error) {
	if shape != cifarShape || len(planes) != 3*cifarPixels {
		return false, fmt.Errorf("%w: %d bytes as pictures of %d×%d, want %d as those of %d×%d", ErrPicture, len(planes), shape.Width, shape.Height, 3*cifarPixels, cifarShape.Width, cifarShape.Height)
	}
	red, green, blue := planes[:cifarPixels], planes[cifarPixels:2*cifarPixels], planes[2*cifarPixels:]
	for i := range red {
		pixels[3*i], pixels[3*i+1], pixels[3*i+2] = red[i], green[i], blue[i]
	}
	return false, nil
}
