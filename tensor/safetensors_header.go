package tensor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// fileEntry is one tensor of a file's header.
type fileEntry struct {
	name       string
	dtype      string
	shape      []int
	values     int    // product of shape
	begin, end uint64 // byte offsets from the end of the header
}

// fileHeader is a header that has been checked as a whole: its entries, in the
// order of their data, fill the data without gap or overlap.
type fileHeader struct {
	entries  []fileEntry
	metadata map[string]string
}

// dtypeSize returns the bytes of one value of an element type, 0 for types that this package cannot read.
func dtypeSize(dtype string) int {
	switch dtype {
	case "I64":
		return 8
	case "F32":
		return 4
	case "F16", "BF16":
		return 2
	default:
		return 0
	}
}

// readHeader reads the length word and the header. Its memory grows with the bytes that arrive, not with the length
// that they announce.
func readHeader(r io.Reader) (*fileHeader, error) {
	var word [8]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, readError("the header's length", err)
	}
	size := binary.LittleEndian.Uint64(word[:])
	if size > maxHeader {
		return nil, badFile("", "header of %d bytes, and the limit is %d: it is damaged, or no safetensors file", size, maxHeader)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, int64(size)); err != nil {
		return nil, readError("the header", err)
	}
	h, err := parseHeader(text.Bytes())
	if err != nil {
		return nil, err
	}
	return h, h.checkData()
}

func readError(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FormatError{Reason: "the file ends within " + what, Err: io.ErrUnexpectedEOF}
	}
	return fmt.Errorf("tensor: read %s of a safetensors file: %w", what, err)
}

func parseHeader(text []byte) (*fileHeader, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, badFile("", "the header does not begin with {")
	}
	text = bytes.TrimRight(text, " ") // padding
	// The decoder below reports wrong types, but it would replace invalid UTF-8 without an error; wrong syntax is an
	// error here.
	if text[len(text)-1] != '}' || !utf8.Valid(text) || !json.Valid(text) {
		return nil, badFile("", "the header is not a JSON object in UTF-8, padded with spaces")
	}
	p := headerParser{dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	h := &fileHeader{}
	seen := make(map[string]bool)
	err := p.object("the header", func(name string) error {
		if seen[name] {
			return badFile(name, "the name is there twice")
		}
		seen[name] = true
		if name == reservedName {
			var err error
			h.metadata, err = p.metadata()
			return err
		}
		if len(h.entries) == maxRanges {
			return badFile("", "more than %d tensors", maxRanges)
		}
		e, err := p.entry(name)
		h.entries = append(h.entries, e)
		return err
	})
	return h, err
}

// checkData sorts the entries by their data and checks that they fill it. (No
// entry is empty, so two that begin together overlap.)
func (h *fileHeader) checkData() error {
	slices.SortFunc(h.entries, func(a, b fileEntry) int { return cmp.Compare(a.begin, b.begin) })
	var at uint64
	for _, e := range h.entries {
		if e.begin < at {
			return badFile(e.name, "data at [%d, %d) overlaps another tensor's, which ends at %d", e.begin, e.end, at)
		}
		if e.begin > at {
			return badFile(e.name, "a hole of %d bytes lies before its data", e.begin-at)
		}
		at = e.end
	}
	return nil
}

// check makes sure that the fields of an entry agree with each other.
func (e *fileEntry) check() error {
	size := dtypeSize(e.dtype)
	if size == 0 {
		return &FormatError{Tensor: e.name, Reason: fmt.Sprintf("dtype %.64q", e.dtype), Err: errDtype}
	}
	values, err := shapeLen(e.shape)
	if err != nil {
		return badFile(e.name, "%v", err)
	}
	e.values = values
	if e.begin > e.end {
		return badFile(e.name, "data ends at %d before it begins at %d", e.end, e.begin)
	}
	if need := uint64(size) * uint64(values); e.end-e.begin != need {
		return badFile(e.name, "shape %v of %s needs %d bytes, data_offsets have %d", e.shape, e.dtype, need, e.end-e.begin)
	}
	return nil
}
