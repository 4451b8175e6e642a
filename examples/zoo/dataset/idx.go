package dataset

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-97356399/murmuration/peer/decoded"
)

// What can be wrong with a data file; a DataError wraps one of them.
var (
	// ErrMissing: the file does not exist.
	ErrMissing = errors.New("not found")
	// ErrNotIDX: the file is no IDX file of the kind wanted, gzipped or not.
	ErrNotIDX = errors.New("not the IDX file it should be")
	// ErrTruncated: the file ends early.
	ErrTruncated = errors.New("truncated")
	// ErrCorrupt: the gzip stream is damaged.
	ErrCorrupt = errors.New("damaged")
	// ErrTrailing: the file is longer than its header says.
	ErrTrailing = errors.New("longer than its header says")
	// ErrMismatch: the file does not match its companion, such as pictures their labels.
	ErrMismatch = errors.New("does not match its companion")
	// ErrEmpty: the file or folder has no picture that can be used.
	ErrEmpty = errors.New("holds no pictures")
	// ErrTooLarge: the data exceeds a bound of this package.
	ErrTooLarge = errors.New("too large")
	// ErrChanged: the records of the file have changed since it was first read.
	ErrChanged = errors.New("has changed")
	// ErrUnclear: the folder holds data in two formats.
	ErrUnclear = errors.New("holds data in two formats")
)

// DataError says which file could not be used and what to do about it.
type DataError struct {
	Path string
	Err  error
}

func (e *DataError) Error() string { return fmt.Sprintf("dataset: data file %s: %v", e.Path, e.Err) }
func (e *DataError) Unwrap() error { return e.Err }

// MaxItems bounds the number of pictures or labels of an IDX file.
const MaxItems = 1 << 20

// idxUint8 is the type code of bytes in an IDX file.
const idxUint8 = 8

// readIDX reads an IDX file of bytes, gzipped or plain, whose items have the
// given dimensions: none for labels, rows and columns for pictures. It returns
// the items one after the other. The error is a *DataError.
func readIDX(path string, item ...int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &DataError{Path: path, Err: err}
	}
	defer file.Close()
	data, err := decodePacked(file, item...)
	if err != nil {
		return nil, &DataError{Path: path, Err: err}
	}
	return data, nil
}

// readIDXOnce is readIDX, but only one of several jobs decodes the file.
func readIDXOnce(ctx context.Context, folder *decoded.Folder, path string, item ...int) ([]byte, error) {
	r := decoded.Recipe{Files: []string{path}, Settings: fmt.Sprint("idx", item)}
	return decoded.Bytes(ctx, folder, r, func() ([]byte, error) { return readIDX(path, item...) })
}

// decodePacked decodes an IDX stream, gzipped or not.
func decodePacked(r io.Reader, item ...int) ([]byte, error) {
	stream, _, err := unpack(r)
	if err != nil {
		return nil, err
	}
	return decodeIDX(stream, item...)
}

// unpack unpacks gzip, which it detects by the first bytes and not by the name:
// browsers unpack downloads and keep the name.
func unpack(r io.Reader) (stream io.Reader, packed bool, err error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if head, _ := buffered.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return buffered, false, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, true, explain(err)
	}
	return unpacked, true, nil
}

// decodeIDX decodes a plain IDX stream, to its end. Memory grows with the bytes in
// the stream, not with the count that its header claims.
func decodeIDX(r io.Reader, item ...int) ([]byte, error) {
	head := make([]byte, 4*(2+len(item)))
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return nil, explain(err)
	}
	if err := checkMagic(head, item); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, head[4:]); err != nil {
		return nil, explain(err)
	}
	count := binary.BigEndian.Uint32(head[4:])
	if count < 1 || count > MaxItems {
		return nil, fmt.Errorf("%w: its header claims %d items, want 1 to %d; fetch it again", ErrNotIDX, count, MaxItems)
	}
	size := int(count)
	for i, want := range item {
		if got := binary.BigEndian.Uint32(head[8+4*i:]); got != uint32(want) {
			return nil, fmt.Errorf("%w: dimension %d of an item is %d, want %d; is it of another data set?", ErrNotIDX, i+1, got, want)
		}
		size *= want
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
	switch {
	case len(data) > size:
		return nil, fmt.Errorf("%w, which is %d bytes of data; fetch it again", ErrTrailing, size)
	case err != nil:
		return nil, explain(err)
	case len(data) < size:
		return nil, explain(io.ErrUnexpectedEOF)
	}
	return data, nil
}

// checkMagic checks the first four bytes: two zeros, the type, the number of dimensions.
func checkMagic(head []byte, item []int) error {
	want := []byte{0, 0, idxUint8, byte(1 + len(item))}
	if bytes.Equal(head[:4], want) {
		return nil
	}
	what := "labels"
	if len(item) > 0 {
		what = "pictures"
	}
	return fmt.Errorf("%w: it starts with % x, a file of %s with % x (or 1f 8b, gzipped); fetch it again", ErrNotIDX, head[:4], what, want)
}

// explain adds to an error of reading what to do about it.
func explain(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: was a download cut off? Fetch it again", ErrTruncated)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		return fmt.Errorf("%w (%w): fetch it again", ErrCorrupt, err)
	}
	return err
}
