package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seed-97356399/murmuration/internal/kernel"
)

// maxMismatches is how many differences between a file and a layout one error names.
const maxMismatches = 10

// ReadSafetensors reads a whole safetensors file, to its end. Its tensors become ranges in the order of their data.
// Their kind is Dense and their sharing Shared, since the format has neither. F32 values are kept bit for bit, NaN
// included; F16 and BF16 are converted exactly, I64, in which torch counts batches, to the nearest value. Metadata is nil if the file has none.
//
// The file may come from anyone. It is refused with a *FormatError if its header is larger than 100 MB, has a name
// twice or contradicts itself; if its tensors overlap, leave gaps, are empty or of another element type; or if it is
// cut short or has bytes left over. Memory is bounded by a few times the bytes that were really read.
func ReadSafetensors(r io.Reader) (*Params, map[string]string, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, nil, err
	}
	specs := make([]Spec, len(h.entries))
	for i, e := range h.entries {
		specs[i] = Spec{Name: e.name, Shape: e.shape}
	}
	layout, err := NewLayout(specs...)
	if err != nil {
		return nil, nil, badFile("", "%v", err)
	}
	var (
		values Vector
		in     = valueReader{from: r}
	)
	for _, e := range h.entries {
		for left := e.values; left > 0; {
			n := min(left, chunkValues)
			values = extend(values, n, layout.Len())
			if err := in.fill(values[len(values)-n:], e); err != nil {
				return nil, nil, err
			}
			left -= n
		}
	}
	if err := in.end(); err != nil {
		return nil, nil, err
	}
	p, err := WrapParams(layout, values)
	return p, h.metadata, err
}

// ReadSafetensorsMetadata reads the header of a safetensors file and returns the metadata, nil if the file has none.
// A header that ReadSafetensors refuses is refused here too. It does not read the tensors' values, nor check that
// they exist.
func ReadSafetensorsMetadata(r io.Reader) (map[string]string, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	return h.metadata, nil
}

// match returns an error that says where the file and a layout differ. Names are unique on both sides, so with equal
// counts each range of the layout has its tensor.
func (h *fileHeader) match(l *Layout) error {
	var faults []error
	inFile := make(map[string]bool, len(h.entries))
	for _, e := range h.entries {
		inFile[e.name] = true
		r, ok := l.Lookup(e.name)
		if !ok {
			faults = append(faults, fmt.Errorf("tensor %q is not in the layout", e.name))
		} else if !slices.Equal(r.Shape, e.shape) {
			faults = append(faults, fmt.Errorf("tensor %q has shape %v in the file, %v in the layout", e.name, e.shape, r.Shape))
		}
	}
	for _, r := range l.ranges {
		if !inFile[r.Name] {
			faults = append(faults, fmt.Errorf("tensor %q is not in the file", r.Name))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	if more := len(faults) - maxMismatches; more > 0 {
		faults = append(faults[:maxMismatches:maxMismatches], fmt.Errorf("and %d more", more))
	}
	return fmt.Errorf("tensor: load safetensors: %w:\n%w", ErrMismatch, errors.Join(faults...))
}

// extend lengthens v by n values. Its capacity doubles, up to limit, so that a
// header cannot make a short file cost much memory.
func extend(v Vector, n, limit int) Vector {
	need := len(v) + n
	if need > cap(v) {
		longer := make(Vector, len(v), min(limit, max(need, 2*cap(v))))
		copy(longer, v)
		v = longer
	}
	return v[:need]
}

// valueReader reads the data behind a header.
type valueReader struct {
	from io.Reader
	buf  []byte
}

// fill reads as many values of e's element type as dst has.
func (v *valueReader) fill(dst Vector, e fileEntry) error {
	if v.buf == nil {
		v.buf = make([]byte, ValueSize*chunkValues)
	}
	size := dtypeSize(e.dtype)
	for len(dst) > 0 {
		n := min(len(v.buf)/size, chunkValues, len(dst))
		code := v.buf[:size*n]
		if _, err := io.ReadFull(v.from, code); err != nil {
			return readError("the tensors' data", err)
		}
		switch e.dtype {
		case "F32":
			FromBytes(dst[:n], code)
		case "F16":
			kernel.FP16Decode(dst[:n], code)
		case "BF16":
			kernel.BF16Decode(dst[:n], code)
		case "I64": // torch counts batches in it
			for i := range n {
				dst[i] = float32(int64(binary.LittleEndian.Uint64(code[8*i:])))
			}
		}
		dst = dst[n:]
	}
	return nil
}

func (v *valueReader) end() error {
	var one [1]byte
	switch _, err := io.ReadFull(v.from, one[:]); {
	case err == nil:
		return badFile("", "bytes follow the last tensor's data")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return readError("the end", err)
	}
}
