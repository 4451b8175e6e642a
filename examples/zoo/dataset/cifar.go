package dataset

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
)

// cifarShape is the shape of a picture of CIFAR-10 and CIFAR-100.
var cifarShape = Shape{Height: 32, Width: 32, Channels: 3}

// cifarPixels is the number of pixels of a picture.
const cifarPixels = 32 * 32

// cifarForm is the binary form of one of both sets. A record is its labels, one byte each, of which the last counts, then
// the red, green and blue values of all pixels.
type cifarForm struct {
	folder         string // that the archive unpacks to
	train, heldOut string // what the names of the files begin with
	labels         int
	classes        int
}

// cifarForms are the forms of CIFAR-10 and CIFAR-100; the latter has a coarse label before the one of the class.
func cifarForms() []cifarForm {
	return []cifarForm{
		{"cifar-10-batches-bin", "data_batch_", "test_batch", 1, Classes},
		{"cifar-100-binary", "train.bin", "test.bin", 2, 100},
	}
}

// cifarBatches are the binary files of one set.
type cifarBatches struct {
	cifarForm
	paths []string
}

func (b cifarBatches) files() int           { return len(b.paths) }
func (b cifarBatches) path(i int) string    { return b.paths[i] }
func (b cifarBatches) parts(i int) []string { return b.paths[i : i+1] }
func (cifarBatches) newDecoder() decoder    { return cifarDecoder{} }

func (b cifarBatches) open(i int, labels bool) (recordReader, error) {
	file, err := os.Open(b.paths[i])
	if err != nil {
		return nil, err
	}
	r := newCIFARReader(b.cifarForm, b.paths[i], file)
	r.file = file
	return r, nil
}

// cifarReader reads the records of one file. If only the labels are wanted, it
// reads the pictures, too: to skip three kilobytes is not faster.
type cifarReader struct {
	cifarForm
	path string
	file io.Closer
	from *bufio.Reader
	data []byte
	at   int // the number of the next record
}

func newCIFARReader(form cifarForm, path string, from io.Reader) *cifarReader {
	return &cifarReader{cifarForm: form, path: path, from: bufio.NewReaderSize(from, 1<<16), data: make([]byte, form.labels+3*cifarPixels)}
}

func (r *cifarReader) Close() error { return r.file.Close() }

func (r *cifarReader) next(rec *record) error {
	label, planes, err := r.cut()
	if err != nil {
		return err
	}
	if int(label) >= r.classes {
		return &RecordError{
			Path: r.path, Key: strconv.Itoa(r.at - 1),
			Err: fmt.Errorf("%w: %d, want less than %d", ErrLabel, label, r.classes),
		}
	}
	*rec = record{label: label, packed: planes}
	return nil
}

// cut reads the next record. It returns io.EOF at the end, if no record was cut off.
func (r *cifarReader) cut() (label uint8, planes []byte, err error) {
	switch _, err := io.ReadFull(r.from, r.data); err {
	case nil:
		r.at++
		return r.data[r.labels-1], r.data[r.labels:], nil
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
