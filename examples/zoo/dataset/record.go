package dataset

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Bounds of what is read from files that hold pictures.
const (
	// MaxRecords bounds the number of pictures of a training or held-out set.
	MaxRecords = 1 << 24
	// MaxFiles bounds the number of files of a folder.
	MaxFiles = 1 << 20
	// MaxRecordBytes bounds a packed picture, as it is in its file.
	MaxRecordBytes = 1 << 24
	// MaxRecordPixels bounds the pixels of a picture as it is in its file, which takes
	// up to 12 bytes for each while it is decoded.
	MaxRecordPixels = 1 << 25
	// MaxPixels bounds the number of pixels of a picture as the set has it.
	MaxPixels = 1 << 20
)

// What can be wrong with one record; a RecordError wraps one of them.
var (
	// ErrRecord: the record lacks its picture or its label, or has two of one.
	ErrRecord = errors.New("incomplete")
	// ErrLabel: the label is no number, or of no class.
	ErrLabel = errors.New("bad label")
	// ErrPicture: the picture cannot be decoded, or is too large.
	ErrPicture = errors.New("bad picture")
)

// RecordError names a record that was skipped, and why.
type RecordError struct {
	// Path is the file, Key the record in it.
	Path, Key string
	Err       error
}

func (e *RecordError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("dataset: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("dataset: %s, record %s: %v", e.Path, e.Key, e.Err)
}
func (e *RecordError) Unwrap() error { return e.Err }

// record is one labelled picture as it is in its file.
type record struct {
	key   string
	label uint8
	// packed is the picture, nil if only the label was asked for.
	packed []byte
	// fault is why there is no picture although it was asked for.
	fault error
}

// source is the files of a training or of a held-out set.
type source interface {
	// files is the number of files, in an order that all peers have.
	files() int
	// path names a file.
	path(i int) string
	// open reads the records of a file from its start; their labels only, if
	// labels is set.
	open(i int, labels bool) (recordReader, error)
	// newDecoder makes what turns packed pictures of the source into pixels.
	newDecoder() decoder
}

// recordReader reads the records of one file in their order.
type recordReader interface {
	// next reads into r, whose packed bytes last until the next call. The error is
	// io.EOF at the end, a *RecordError for one that is to be skipped, and otherwise
	// a fault of the file.
	next(r *record) error
	Close() error
}

// decoder turns packed pictures into pixels. Not safe for concurrent use.
type decoder interface {
	// shape is that of a picture, from its header.
	shape(packed []byte) (Shape, error)
	// decode writes the pixels of a picture in this shape, and tells whether it had
	// to be resized. The error is an ErrPicture.
	decode(pixels []uint8, shape Shape, packed []byte) (resized bool, err error)
}

// maxNamed bounds how many skipped records are remembered by name.
const maxNamed = 100

// findings are what was found of records: which were skipped, and how many pictures were
// resized, each once however often it is met. They are safe for concurrent use: a
// decoder adds while a training loop asks.
type findings struct {
	mu               sync.Mutex
	skipped, resized marks
	named            []*RecordError
}

// marks count records.
type marks struct {
	total int
	met   []uint64 // has a bit for each record, by its number
}

// add counts a record, unless one of its number has been; false then.
func (m *marks) add(number int32) bool {
	if number != noNumber {
		word, bit := int(number/64), uint64(1)<<(number%64)
		for len(m.met) <= word {
			m.met = append(m.met, 0)
		}
		if m.met[word]&bit != 0 {
			return false
		}
		m.met[word] |= bit
	}
	m.total++
	return true
}

// noNumber stands for the number of a record that has none.
const noNumber = -1

// skip notes a record that cannot be used.
func (f *findings) skip(number int32, err *RecordError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipped.add(number) && len(f.named) < maxNamed {
		f.named = append(f.named, err)
	}
}

// resize notes a picture that was resized.
func (f *findings) resize(number int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resized.add(number)
}

// join takes over what another has counted, which nobody else uses any more.
func (f *findings) join(other *findings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped.total += other.skipped.total
	f.resized.total += other.resized.total
	f.named = append(f.named, other.named...)
	f.named = f.named[:min(len(f.named), maxNamed)]
}

// after is how many were skipped, and those named from the given one on.
func (f *findings) after(from int) (total int, named []*RecordError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from < len(f.named) {
		named = append(named, f.named[from:]...)
	}
	return f.skipped.total, named
}

// maxReasons bounds how many skipped records an error names.
const maxReasons = 10

// reasons lists what was skipped, a line each.
func (f *findings) reasons() string {
	var text strings.Builder
	total, named := f.after(0)
	named = named[:min(len(named), maxReasons)]
	for _, err := range named {
		fmt.Fprintf(&text, "\n  %v", err)
	}
	if more := total - len(named); more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return text.String()
}
