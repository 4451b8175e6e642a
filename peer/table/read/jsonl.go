package read

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"
)

// jsonRows reads a file of JSON lines. Each line is an object whose members are numbers, texts, true, false or null.
// Absent members are missing values.
type jsonRows struct {
	*lines
}

func openJSON(in io.ReadCloser, _ sink) (*jsonRows, error) {
	l, err := newLines(in)
	if err != nil {
		return nil, err
	}
	l.closer = in
	return &jsonRows{l}, nil
}

func (r *jsonRows) next(s sink) (*Damage, error) {
	for {
		n, err := r.length()
		if err != nil {
			return nil, err
		}
		line, torn := chomp(r.rest()[:n]), r.rest()[n-1] != '\n'
		r.at = r.number
		if err := r.take(n); err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if r.lossy {
			s = lossless{s}
		}
		column, wrong := object(line, s)
		if wrong == "" {
			return nil, nil
		}
		if torn && column == nil {
			wrong = "the last line is cut off: " + wrong
		}
		return &Damage{Line: r.at, Column: string(column), Reason: wrong, Text: cut(line)}, nil
	}
}

// object passes the members of an object to a sink. If one is wrong, it returns that member's name and the fault.
func object(line []byte, s sink) (column []byte, wrong string) {
	if !bytes.HasPrefix(line, []byte{'{'}) || !json.Valid(line) {
		return nil, "no JSON object"
	}
	s.blank()
	rest := bytes.TrimLeft(line[1:], space)
	for rest[0] != '}' {
		n := valueSize(rest)
		name := unquoted(rest[:n])
		rest = bytes.TrimLeft(rest[n:], space) // at the colon
		rest = bytes.TrimLeft(rest[1:], space) // at the value
		n = valueSize(rest)
		if wrong := member(s, name, rest[:n]); wrong != "" {
			return name, wrong
		}
		rest = bytes.TrimLeft(rest[n:], space)
		if rest[0] == ',' {
			rest = bytes.TrimLeft(rest[1:], space)
		}
	}
	return nil, ""
}

// space is what JSON allows between its parts.
const space = " \t\r\n"

// valueSize is the length of the value at the start of valid JSON; 1 for an array or an object.
func valueSize(rest []byte) int {
	switch rest[0] {
	case '"':
		for i := 1; ; i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case '{', '[':
		return 1
	}
	return bytes.IndexAny(rest, ",}"+space)
}

func member(s sink, name, value []byte) string {
	if value[0] == '{' || value[0] == '[' {
		return "an object or an array within a row"
	}
	place := s.place(name)
	switch place {
	case ignored:
		return ""
	case unknown:
		return "a column that is not in the schema"
	}
	switch value[0] {
	case 'n':
		s.none(place)
		return ""
	case '"':
		return s.field(place, unquoted(value))
	}
	return s.field(place, value)
}

// unquoted is the value of a JSON string.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil { // cannot fail: the JSON is valid
		return quoted
	}
	return []byte(text)
}
