package read

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// records splits a text into records of fields, as encoding/csv does. That package can neither bound the size of a
// record nor continue with the next line after a quote that is not closed.
type records struct {
	*lines
	comma   byte
	fields  [][]byte
	scratch []byte // for fields that contain quotes
}

// record is one line, or the lines that a quoted field spans.
type record struct {
	line int64
	// fields are valid until the next record.
	fields [][]byte
	// bad is what is wrong with the line; the next record then begins at the next line.
	bad string
	// torn tells that the text ends before the end of the line.
	torn bool
	// text is the first line.
	text []byte
}

// next returns the next record, without blank lines.
func (r *records) next() (record, error) {
	for {
		n, err := r.length()
		if err != nil {
			return record{}, err
		}
		text := chomp(r.rest()[:n])
		if len(text) == 0 {
			_ = r.take(n) // the line is blank
			continue
		}
		rec := record{line: r.number, text: text, torn: r.rest()[n-1] != '\n'}
		r.fields = r.fields[:0]
		if bytes.IndexByte(text, '"') >= 0 {
			return r.quoted(rec, n)
		}
		from := 0
		for i, c := range text {
			if c == r.comma {
				r.fields = append(r.fields, text[from:i])
				from = i + 1
			}
		}
		rec.fields = append(r.fields, text[from:])
		r.fields = rec.fields
		return rec, r.take(n)
	}
}

var errMore = errors.New("the record goes on")

// quoted splits a record whose first line, of n bytes, contains quotes.
func (r *records) quoted(rec record, n int) (record, error) {
	for {
		size, err := r.split()
		switch {
		case err == errMore && !r.eof && len(r.rest()) <= MaxRecord:
			if err := r.fill(); err != nil {
				return record{}, err
			}
			continue
		case err == errMore:
			rec.bad, size = "a quote is not closed", n
		case err != nil:
			rec.bad, size = err.Error(), n
		}
		rec.text = chomp(r.rest()[:n])
		rec.torn = r.rest()[size-1] != '\n'
		rec.fields = r.fields
		return rec, r.take(size)
	}
}

// split divides a record into fields, and returns its size. If the buffer ends first, the record continues.
func (r *records) split() (size int, err error) {
	data := r.rest()
	r.fields, r.scratch = r.fields[:0], r.scratch[:0]
	if cap(r.scratch) < len(data) {
		r.scratch = make([]byte, 0, len(data)) // fields point into scratch, so it must not move
	}
	for at := 0; ; {
		var field []byte
		if at < len(data) && data[at] == '"' {
			field, at, err = r.unquote(data, at+1)
			if err != nil {
				return 0, err
			}
		} else {
			end := at
			for end < len(data) && data[end] != r.comma && data[end] != '\n' {
				end++
			}
			if end == len(data) && !r.eof {
				return 0, errMore
			}
			field, at = data[at:end], end
			if at == len(data) || data[at] == '\n' {
				field = chomp(field)
			}
			if bytes.IndexByte(field, '"') >= 0 {
				return 0, errors.New("a quote within a field that has none around it")
			}
		}
		r.fields = append(r.fields, field)
		if at == len(data) {
			return at, nil
		}
		at++
		if data[at-1] == '\n' {
			return at, nil
		}
	}
}

// unquote returns the field whose opening quote is just before at, and its end: a comma, or the end of the line or of
// the text.
func (r *records) unquote(data []byte, at int) (field []byte, end int, err error) {
	start, plain := len(r.scratch), true
	for from := at; ; {
		i := bytes.IndexByte(data[from:], '"')
		if i < 0 {
			return nil, 0, errMore
		}
		i += from
		next := data[i+1:]
		if len(next) < 2 && !r.eof {
			return nil, 0, errMore
		}
		if len(next) > 0 && next[0] == '"' {
			r.scratch = append(r.scratch, data[from:i+1]...)
			from, plain = i+2, false
			continue
		}
		if plain {
			field = data[at:i]
		} else {
			r.scratch = append(r.scratch, data[from:i]...)
			field = r.scratch[start:]
		}
		end = i + 1
		if len(next) > 0 && next[0] == '\r' && (len(next) == 1 || next[1] == '\n') {
			end++
		}
		if end == len(data) || data[end] == r.comma || data[end] == '\n' {
			return field, end, nil
		}
		return nil, 0, errors.New("text behind a closing quote")
	}
}

// ErrSeparator: the first line seems to have another separator; set Config.Separator.
var ErrSeparator = errors.New("fields of this format are separated by")

// csvRows are the rows of a CSV or TSV file.
type csvRows struct {
	records
	places []int // the sink's column of each field
	names  []string
}

// openCSV reads the header.
func openCSV(in io.ReadCloser, comma byte, s sink) (*csvRows, error) {
	l, err := newLines(in)
	if err != nil {
		return nil, err
	}
	l.closer = in
	r := &csvRows{records: records{lines: l, comma: comma}}
	header, err := r.records.next()
	switch {
	case err == io.EOF:
		return nil, errors.New("it is empty: the names of the columns are missing")
	case err != nil:
		return nil, err
	case header.bad != "":
		return nil, fmt.Errorf("line %d, the names of the columns: %s", header.line, header.bad)
	}
	if bytes.IndexByte(header.text, 0) >= 0 {
		return nil, fmt.Errorf("line %d has bytes of 0, as UTF-16 has: %w", header.line, ErrEncoding)
	}
	for i, f := range header.fields {
		name := string(bytes.TrimSpace(f))
		if name == "" { // a column of row names, which some programs write
			name = fmt.Sprintf("column%d", i+1)
		}
		r.names = append(r.names, name)
	}
	if err := checkNames(r.names); err != nil {
		return nil, err
	}
	if len(r.names) == 1 && strings.ContainsAny(r.names[0], ",;\t|") {
		return nil, fmt.Errorf("line %d has one column, %q: %w %q", header.line, r.names[0], ErrSeparator, comma)
	}
	r.places, err = s.places(r.names)
	return r, err
}

func (r *csvRows) next(s sink) (*Damage, error) {
	rec, err := r.records.next()
	if err != nil {
		return nil, err
	}
	if r.at = rec.line; rec.bad == "" && len(rec.fields) != len(r.places) {
		rec.bad = fmt.Sprintf("%d fields, not %d", len(rec.fields), len(r.places))
	}
	if rec.bad != "" {
		if rec.torn {
			rec.bad = "the last line is cut off: " + rec.bad
		}
		return &Damage{Line: rec.line, Reason: rec.bad, Text: cut(rec.text)}, nil
	}
	if r.lossy {
		s = lossless{s}
	}
	for i, place := range r.places {
		if place == ignored {
			continue
		}
		if wrong := s.field(place, rec.fields[i]); wrong != "" {
			return &Damage{Line: rec.line, Column: r.names[i], Reason: wrong, Text: cut(rec.fields[i])}, nil
		}
	}
	return nil, nil
}
