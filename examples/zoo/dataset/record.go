package dataset

import (
	"errors"
	"fmt"
	"sync"
)

// Bounds of what is read from files that hold pictures.
const (
	// MaxRecords bounds the number of pictures of a training or held-out set.
	MaxRecords = 1 << 24
	// MaxFiles bounds the number of files of a folder.
	MaxFiles = 1 << 20
	// MaxRecordBytes bounds a packed picture, as it is in its file.
	MaxRecordBytes = 1 << 22
	// MaxPixels bounds the number of pixels of a picture.
	MaxPixels = 1 << 20
)

// What can be wrong with one record; a RecordError wraps one of them.
var (
	// ErrRecord: the record lacks its picture or its label, or has two of one.
	ErrRecord = errors.New("incomplete")
	// ErrLabel: the label is no number, or of no class.
	ErrLabel = errors.New("bad label")
	// ErrPicture: the picture cannot be decoded, or is of another size.
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
	// decode writes the pixels of a picture of this shape. The error is an
	// ErrPicture.
	decode(pixels []uint8, shape Shape, packed []byte) error
}

// maxNamed bounds how many skipped records are remembered by name.
const maxNamed = 100

// skips counts the records that were skipped, each once however often it is met. It
// is safe for concurrent use: a decoder adds while a training loop asks.
type skips struct {
	mu    sync.Mutex
	total int
	named []*RecordError
	// met has a bit for each record, by its number.
	met []uint64
}

// noNumber stands for the number of a record that has none.
const noNumber = -1

// add notes a record, unless one of its number has been.
func (s *skips) add(number int32, err *RecordError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number != noNumber {
		word, bit := int(number/64), uint64(1)<<(number%64)
		for len(s.met) <= word {
			s.met = append(s.met, 0)
		}
		if s.met[word]&bit != 0 {
			return
		}
		s.met[word] |= bit
	}
	s.total++
	if len(s.named) < maxNamed {
		s.named = append(s.named, err)
	}
}

// join takes over what another has counted, which nobody else uses any more.
func (s *skips) join(other *skips) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += other.total
	s.named = append(s.named, other.named...)
	s.named = s.named[:min(len(s.named), maxNamed)]
}

// after is how many there are, and those named from the given one on.
func (s *skips) after(from int) (total int, named []*RecordError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from < len(s.named) {
		named = append(named, s.named[from:]...)
	}
	return s.total, named
}
