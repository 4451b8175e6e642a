package decoded

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// tooLarge is all that a file holds whose content would be larger than the folder may be.
const tooLarge = "too large"

// buffer is how much is read and written at once.
const buffer = 1 << 18

var errTooLarge = errors.New("larger than the folder may be")

// File is decoded data, to be read from its beginning. Not safe for concurrent use.
type File struct {
	io.Reader
	io.Closer
	Size int64 // in bytes, of all that can be read
}

// openFile opens a file, goes over all of it to check it, and notes that it was used.
func openFile(root *os.Root, name string) (*File, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	content, size, err := check(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_ = root.Chtimes(name, time.Time{}, time.Now()) // it is only removed earlier
	return &File{content, file, size}, nil
}

// check reads to the end, where gzip has a length and a checksum, and goes back to the beginning.
func check(file *os.File) (content *gzip.Reader, size int64, err error) {
	if info, err := file.Stat(); err != nil || info.Size() == int64(len(tooLarge)) {
		return nil, 0, errors.Join(err, errTooLarge)
	}
	buffered := bufio.NewReaderSize(file, buffer)
	if content, err = gzip.NewReader(buffered); err == nil {
		size, err = io.Copy(io.Discard, content)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		buffered.Reset(file)
		err = content.Reset(buffered)
	}
	return content, size, err
}

// fill writes a file, by gzip for the sake of its checksum: nothing is compressed.
func fill(file io.Writer, limit int64, decode func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(&bounded{file, limit}, buffer)
	content, _ := gzip.NewWriterLevel(buffered, gzip.NoCompression) // a level that there is
	return errors.Join(decode(content), content.Close(), buffered.Flush())
}

// bounded is a writer of so many bytes.
type bounded struct {
	io.Writer
	left int64
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errTooLarge
	}
	return b.Writer.Write(p)
}
