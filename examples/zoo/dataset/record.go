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
	// MaxRecordBytes bounds a packed picture in its file.
	MaxRecordBytes = 1 << 24
	// MaxRecordPixels bounds the pixels of a picture in its file; decoding takes up to 12 bytes for each.
	MaxRecordPixels = 1 << 25
	// MaxPixels bounds the pixels of a picture in a set.
	MaxPixels = 1 << 20
)

// Faults of one record; a RecordError wraps one of them.
var (
	// ErrRecord: the record has no picture or no label, or two of one kind.
	ErrRecord = errors.New("incomplete")
	// ErrLabel: the label is not a number, or not a class.
	ErrLabel = errors.New("bad label")
	// ErrPicture: the picture cannot be decoded, or is too large.
	ErrPicture = errors.New("bad picture")
)

// RecordError names a skipped record and the reason.
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

// record is one labelled picture in its packed form.
type record struct {
	key   string
	label uint8
	// packed is the picture; nil if only the label was read.
	packed []byte
	// fault is why the picture could not be read.
	fault error
	// pixels are in place of packed where it was decoded before, and perhaps resized.
	pixels  []uint8
	resized bool
}

// source has the files of a training set or a held-out set.
type source interface {
	// files is the number of files, in an order that is the same for all peers.
	files() int
	// path names a file, parts the files that it consists of.
	path(i int) string
	parts(i int) []string
	// open reads the records of a file from its start; with labels, only their labels.
	open(i int, labels bool) (recordReader, error)
	// newDecoder makes a decoder for packed pictures of the source.
	newDecoder() decoder
}

// recordReader reads the records of one file in their order.
type recordReader interface {
	// next reads into r, whose packed bytes are valid until the next call. The error is io.EOF at the end, a
	// *RecordError for a record to skip, and otherwise a fault of the file.
	next(r *record) error
	Close() error
}

// decoder converts packed pictures to pixels. Not safe for concurrent use.
type decoder interface {
	// shape reads the shape of a picture from its header.
	shape(packed []byte) (Shape, error)
	// decode writes the pixels of a picture in this shape, and reports whether it was resized. The error is an
	// ErrPicture.
	decode(pixels []uint8, shape Shape, packed []byte) (resized bool, err error)
}

// maxNamed bounds how many skipped records are kept by name.
const maxNamed = 100

// findings counts skipped records and resized pictures, each once however often it is read. They are safe for
// concurrent use: a decoder adds while a training loop reads.
type findings struct {
	mu               sync.Mutex
	skipped, resized marks
	named            []*RecordError
}

// marks counts records.
type marks struct {
	total int
	met   []uint64 // has a bit for each record, by its number
}

// add counts a record and reports true, unless a record of its number has been counted.
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

// noNumber is the number of a record that has none.
const noNumber = -1

// skip adds a record that cannot be used.
func (f *findings) skip(number int32, err *RecordError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipped.add(number) && len(f.named) < maxNamed {
		f.named = append(f.named, err)
	}
}

// resize adds a picture that was resized.
func (f *findings) resize(number int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resized.add(number)
}

// join adds the findings of another, which nobody else may use any more.
func (f *findings) join(other *findings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped.total += other.skipped.total
	f.resized.total += other.resized.total
	f.named = append(f.named, other.named...)
	f.named = f.named[:min(len(f.named), maxNamed)]
}

// after returns how many records were skipped, and the names from index from on.
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

// reasons lists the skipped records, one a line.
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
