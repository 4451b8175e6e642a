package read

import (
	"bytes"
	"fmt"
	"io"
)

// lines reads a text line by line through a buffer of bounded size. The caller may look at a line before it takes it.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int
	eof        bool
	number     int64 // number of the next line, from 1
	at         int64 // number of the last row's line
	closer     io.Closer
	recoded    bool // the text was decoded; lossy: the last lines taken contain replacement
	lossy      bool
}

func (l *lines) line() int64 { return l.at }

func (l *lines) close() error { return l.closer.Close() }

// firstBuffer is the initial size of the buffer, in bytes.
const firstBuffer = 256 << 10

// newLines skips a byte order mark.
func newLines(r io.Reader) (*lines, error) {
	text, _ := r.(unpacked)
	l := &lines{r: r, buf: make([]byte, firstBuffer), number: 1, recoded: text.recoded}
	for l.end < 3 && !l.eof {
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	if bytes.HasPrefix(l.rest(), []byte{0xEF, 0xBB, 0xBF}) {
		l.start = 3
	}
	return l, nil
}

// rest is the part of the buffer that is not taken yet.
func (l *lines) rest() []byte { return l.buf[l.start:l.end] }

// fill reads more bytes into the buffer, after rest.
func (l *lines) fill() error {
	if l.start > 0 {
		l.end = copy(l.buf, l.rest())
		l.start = 0
	}
	if l.end == len(l.buf) {
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	if err == io.EOF {
		l.eof = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("after line %d: %w", l.number-1+int64(bytes.Count(l.rest(), []byte{'\n'})), err)
	}
	return nil
}

// length is the length of the next line including its end; io.EOF if there is none.
func (l *lines) length() (int, error) {
	for from := 0; ; {
		if i := bytes.IndexByte(l.rest()[from:], '\n'); i >= 0 {
			return from + i + 1, nil
		}
		from = len(l.rest())
		if from > MaxRecord {
			return 0, fmt.Errorf("line %d is longer than %d bytes", l.number, MaxRecord)
		}
		if l.eof {
			if from == 0 {
				return 0, io.EOF
			}
			return from, nil
		}
		if err := l.fill(); err != nil {
			return 0, err
		}
	}
}

// take moves past n bytes. It returns an error if they are not UTF-8.
func (l *lines) take(n int) error {
	text, number := l.buf[l.start:l.start+n], l.number
	l.number += int64(bytes.Count(text, []byte{'\n'}))
	l.start += n
	l.lossy = l.recoded && bytes.Contains(text, replacement)
	return checkUTF8(text, number)
}

// chomp returns a line without its end.
func chomp(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
}
