package read

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// ErrEncoding: a text is not in the encoding that it is read in; set Config.Encoding.
var ErrEncoding = errors.New("the text is not UTF-8 (the table programs of Windows often write windows-1252)")

// encodings has the encodings of Config.Encoding by name; nil is UTF-8.
var encodings = func() map[string]encoding.Encoding {
	all := map[string]encoding.Encoding{
		"":         nil,
		"utf-8":    nil,
		"utf-16le": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
		"utf-16be": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	}
	for _, e := range charmap.All {
		all[strings.ToLower(strings.ReplaceAll(fmt.Sprint(e), " ", "-"))] = e
	}
	return all
}()

// CheckEncoding returns an error if Config.Encoding may not be this name. Names are "utf-8", "utf-16le", "utf-16be",
// "windows-1252", "iso-8859-15", "koi8-r", "macintosh", "ibm-code-page-850" and similar ones.
func CheckEncoding(name string) error {
	if _, ok := encodings[strings.ToLower(name)]; !ok {
		return fmt.Errorf("%q is no encoding that is known: want utf-8, utf-16le, utf-16be, or one of one byte a letter such as windows-1252, iso-8859-15, koi8-r, macintosh", name)
	}
	return nil
}

// asUTF8 converts a text to UTF-8. A byte order mark overrides the name of the encoding.
func asUTF8(in io.ReadCloser, name string) io.ReadCloser {
	buffered := bufio.NewReader(in)
	text := unpacked{Reader: buffered, closer: in.Close}
	head, _ := buffered.Peek(3) // newLines returns the error, if there is one
	e := encodings[strings.ToLower(name)]
	switch {
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}), bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		e = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case e == nil, bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return text
	}
	text.Reader, text.recoded = e.NewDecoder().Reader(buffered), true
	return text
}

// replacement is what a decoder writes for bytes that its encoding does not have.
var replacement = []byte("\uFFFD")

// lossless rejects fields of a decoded text that contain replacement, since two different texts may have become
// equal.
type lossless struct{ sink }

func (s lossless) field(column int, value []byte) string {
	if bytes.Contains(value, replacement) {
		return "a letter that its encoding does not have"
	}
	return s.sink.field(column, value)
}

// checkUTF8 checks lines of a text; number is that of the first line. It accepts a letter that is cut off at the end:
// the caller handles that torn line.
func checkUTF8(text []byte, number int64) error {
	if utf8.Valid(text) {
		return nil
	}
	for at := 0; at < len(text); {
		letter, n := utf8.DecodeRune(text[at:])
		if letter == utf8.RuneError && n == 1 && utf8.FullRune(text[at:]) {
			return fmt.Errorf("line %d, byte %#x: %w", number+int64(bytes.Count(text[:at], []byte{'\n'})), text[at], ErrEncoding)
		}
		at += n
	}
	return nil
}
