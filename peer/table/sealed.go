package table

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxHeader is the most bytes of the first line of a Sealed file.
const maxHeader = 256

// Sealed is a kind of file: a line "MAGIC VERSION KIND BYTES SHA256" (some have no KIND), and then
// so many bytes, so that truncated or changed content is detected by its length and checksum.
type Sealed struct {
	Magic   string
	Version int
	Most    int // bytes after the first line
	// Unsound is the error for a file that is not of this kind or is damaged, Other for one of another version.
	Unsound, Other error
}

// Write writes a file; kind may be "".
func (s Sealed) Write(w io.Writer, kind string, content []byte) error {
	if len(content) > s.Most {
		return fmt.Errorf("writing a %s: its %d bytes are more than %d, the most that are read", s.Magic, len(content), s.Most)
	}
	if kind != "" {
		kind += " "
	}
	header := fmt.Sprintf("%s %d %s%d %x\n", s.Magic, s.Version, kind, len(content), sha256.Sum256(content))
	if _, err := w.Write(append([]byte(header), content...)); err != nil {
		return fmt.Errorf("writing a %s: %w", s.Magic, err)
	}
	return nil
}

// Read gives the content of a file.
func (s Sealed) Read(r io.Reader) ([]byte, error) {
	in := bufio.NewReaderSize(r, maxHeader)
	line, err := in.ReadSlice('\n')
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("reading a %s: %w", s.Magic, err)
	}
	text, is := strings.CutPrefix(string(line), s.Magic+" ")
	words := strings.Fields(text)
	if !is || len(words) == 0 {
		return nil, fmt.Errorf("%w: its first line does not begin with %q", s.Unsound, s.Magic)
	}
	version, err := strconv.Atoi(words[0])
	if err == nil && version != s.Version {
		return nil, fmt.Errorf("%w: of version %d, this release reads version %d", s.Other, version, s.Version)
	}
	last, size := len(words)-1, -1
	if err == nil && last >= 2 {
		size, err = strconv.Atoi(words[last-1])
	}
	if err != nil || size < 0 || size > s.Most {
		return nil, fmt.Errorf("%w: its first line is damaged", s.Unsound)
	}
	content, err := io.ReadAll(io.LimitReader(in, int64(size)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading a %s: %w", s.Magic, err)
	case len(content) < size:
		return nil, fmt.Errorf("%w: it ends after %d of %d bytes; copy it again", s.Unsound, len(content), size)
	case fmt.Sprintf("%x", sha256.Sum256(content)) != words[last]:
		return nil, fmt.Errorf("%w: its contents do not have the checksum of its first line; copy it again", s.Unsound)
	}
	return content, nil
}
