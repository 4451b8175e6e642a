package decoded

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// tooLarge is written to a file, alone, if the decoded data exceeds the limit of the folder.
const tooLarge = "too large"

// buffer is the number of bytes that are read or written at once.
const buffer = 1 << 18

var errTooLarge = errors.New("larger than the folder may be")

// File reads decoded data, from the beginning. Not safe for concurrent use.
type File struct {
	io.Reader
	io.Closer
	Size int64 // bytes that can be read in all
}

// openFile opens a file, checks all of its content, and sets its time of last use.
func openFile(root *os.Root, name string) (*File, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	content, size, err := check(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_ = root.Chtimes(name, time.Time{}, time.Now()) // if this fails, the file is only removed earlier
	return &File{content, file, size}, nil
}

// check reads to the end, where gzip checks length and checksum, and goes back to the beginning.
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

// fill writes a file in gzip's format, uncompressed: gzip is used for its checksum.
func fill(file io.Writer, limit int64, decode func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(&bounded{file, limit}, buffer)
	content, _ := gzip.NewWriterLevel(buffered, gzip.NoCompression) // fails for unknown levels only
	return errors.Join(decode(content), content.Close(), buffered.Flush())
}

// bounded is a writer that fails after left bytes.
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
