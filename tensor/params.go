package tensor

import (
	"fmt"
	"io"
)

// Params is a model: a vector and the layout that names its parts. Params share their
// vector with its other holders; the caller must guard it.
type Params struct {
	layout *Layout
	values Vector
}

// NewParams returns a model of zeros.
func NewParams(l *Layout) *Params {
	return &Params{layout: l, values: make(Vector, l.Len())}
}

// WrapParams returns a model whose values are v itself, not a copy. It is an error if the length of v is not the
// layout's.
func WrapParams(l *Layout, v Vector) (*Params, error) {
	if len(v) != l.Len() {
		return nil, fmt.Errorf("tensor: %d values for a layout of %d", len(v), l.Len())
	}
	return &Params{layout: l, values: v}, nil
}

// Layout returns the names and shapes of the values.
func (p *Params) Layout() *Layout { return p.layout }

// Vector returns all values; writing to it changes the model.
func (p *Params) Vector() Vector { return p.values }

// Tensor returns the values of one range, row-major, or false if the layout has
// no such name. Writing to it changes the model; appending to it does not reach
// the next range.
func (p *Params) Tensor(name string) (Vector, bool) {
	r, ok := p.layout.Lookup(name)
	if !ok {
		return nil, false
	}
	end := r.Offset + r.Len
	return p.values[r.Offset:end:end], true
}

// WriteSafetensors writes the model as a safetensors file of F32 tensors, in the layout's order, with metadata (which
// may be nil) as its "__metadata__". Equal models and metadata give equal bytes. The format has no place for kinds
// and sharing: LoadSafetensors keeps those of the model it reads into.
//
// It fails before it writes anything if metadata is not UTF-8 or makes the header longer than 100 MB. It writes in
// pieces of 64 KiB: to avoid an incomplete file after an error, write to a temporary one.
func (p *Params) WriteSafetensors(w io.Writer, metadata map[string]string) error {
	header, err := encodeHeader(p.layout, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("tensor: write safetensors header: %w", err)
	}
	buf := make([]byte, ValueSize*min(chunkValues, len(p.values)))
	for rest := p.values; len(rest) > 0; {
		n := min(chunkValues, len(rest))
		piece := buf[:ValueSize*n]
		putBytes(piece, rest[:n])
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("tensor: write safetensors data: %w", err)
		}
		rest = rest[n:]
	}
	return nil
}

// LoadSafetensors reads a safetensors file into the model, and returns the file's metadata. Tensors are matched by
// name, in any order. The file must have exactly the layout's names and shapes; otherwise the error wraps ErrMismatch
// and says where they differ. Files that ReadSafetensors refuses are refused here too.
//
// The model changes only if the whole file is valid. That takes memory for a second copy of its values.
func (p *Params) LoadSafetensors(r io.Reader) (map[string]string, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if err := h.match(p.layout); err != nil {
		return nil, err
	}
	values := make(Vector, p.layout.Len())
	in := valueReader{from: r}
	for _, e := range h.entries {
		to, _ := p.layout.Lookup(e.name)
		if err := in.fill(values[to.Offset:to.Offset+to.Len], e); err != nil {
			return nil, err
		}
	}
	if err := in.end(); err != nil {
		return nil, err
	}
	copy(p.values, values)
	return h.metadata, nil
}
