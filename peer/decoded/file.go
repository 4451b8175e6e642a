package decoded

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
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
	Size int64 // bytes on disk: hardly more than can be read
}

// openFile opens a file of so many bytes, and unless it was checked before, checks all of its content.
func openFile(root *os.Root, name string, size int64, checked bool) (*File, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	if size == int64(len(tooLarge)) {
		err = errTooLarge
	} else if !checked {
		err = check(file)
	}
	buffered, content := bufio.NewReaderSize(file, buffer), new(gzip.Reader)
	if err == nil {
		err = content.Reset(buffered)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{content, file, size}, nil
}

// check reads a file to the end, where gzip checks length and checksum, and goes back to the beginning.
func check(file *os.File) error {
	content, err := gzip.NewReader(bufio.NewReaderSize(file, buffer))
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	return err
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
