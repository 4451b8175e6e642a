package tensor

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a layout.
const (
	// maxRanges is how many ranges a layout may have.
	maxRanges = 1 << 16
	// maxNameLen is how many bytes a range's name may have.
	maxNameLen = 256
	// maxDims is how many dimensions a range may have.
	maxDims = 8
	// maxLen is how many values a layout may have: as many as a byte slice can
	// hold.
	maxLen = int(^uint(0)>>1) / ValueSize
)

// reservedName is the one key of a safetensors header that is no tensor.
const reservedName = "__metadata__"

// Layout names the ranges of a vector, in order and without gaps. It never
// changes and may be used by any number of goroutines.
type Layout struct {
	ranges []Range
	byName map[string]int
	length int
	hash   [32]byte
}

// Range is one range of a layout: the values [Offset, Offset+Len) of the vector.
type Range struct {
	Spec
	Offset, Len int
}

// NewLayout lays out ranges one after the other, at most 65,536 of them. The specs are
// copied. An error joins everything that is wrong with them.
func NewLayout(specs ...Spec) (*Layout, error) {
	if len(specs) > maxRanges {
		return nil, fmt.Errorf("tensor: layout of %d ranges: the limit is %d", len(specs), maxRanges)
	}
	l := &Layout{
		ranges: make([]Range, 0, len(specs)),
		byName: make(map[string]int, len(specs)),
	}
	var faults []error
	for i, s := range specs {
		n, err := s.validate()
		if err != nil {
			faults = append(faults, fmt.Errorf("range %d (%q): %w", i, s.Name, err))
		}
		if first, ok := l.byName[s.Name]; ok {
			faults = append(faults, fmt.Errorf("range %d (%q): range %d has the same name", i, s.Name, first))
		} else {
			l.byName[s.Name] = i
		}
		if n > maxLen-l.length {
			faults = append(faults, fmt.Errorf("range %d (%q): the layout is longer than %d values", i, s.Name, maxLen))
			n = 0
		}
		s.Shape = slices.Clone(s.Shape)
		l.ranges = append(l.ranges, Range{Spec: s, Offset: l.length, Len: n})
		l.length += n
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("tensor: layout: %w", errors.Join(faults...))
	}
	l.hash = l.digest()
	return l, nil
}

// Len returns the number of values.
func (l *Layout) Len() int { return l.length }

// Count returns the number of ranges.
func (l *Layout) Count() int { return len(l.ranges) }

// At returns range i, 0 <= i < Count, without allocating: its Shape is the
// layout's own and must not be written to.
func (l *Layout) At(i int) Range { return l.ranges[i] }

// Lookup returns the range of a name, as At does.
func (l *Layout) Lookup(name string) (Range, bool) {
	i, ok := l.byName[name]
	if !ok {
		return Range{}, false
	}
	return l.ranges[i], true
}

// Ranges returns all ranges in order, as a copy that is the caller's.
func (l *Layout) Ranges() []Range {
	ranges := slices.Clone(l.ranges)
	for i := range ranges {
		ranges[i].Shape = slices.Clone(ranges[i].Shape)
	}
	return ranges
}

// String describes the layout, one line for all and one for each range.
func (l *Layout) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d values in %d ranges, hash %x\n", l.length, len(l.ranges), l.hash[:8])
	for _, r := range l.ranges {
		fmt.Fprintf(&b, "%12d %-9v %-6v %v %q\n", r.Offset, r.Kind, r.Sharing, r.Shape, r.Name)
	}
	return b.String()
}

// hashDomain opens the hashed bytes; its number changes with their form.
const hashDomain = "murmuration layout 1\n"

// Hash identifies the layout: equal hashes mean equal names, shapes, kinds and
// sharing in the same order, on every machine and in every version. It is the
// SHA-256 of
//
//	"murmuration layout 1\n"
//	uint32 number of ranges
//	for each range:
//	    uint32 length of the name, the name
//	    uint8 kind, uint8 sharing
//	    uint32 number of dimensions, uint64 each dimension
//
// with all integers in little-endian order.
func (l *Layout) Hash() [32]byte { return l.hash }

func (l *Layout) digest() [32]byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(hashDomain), uint32(len(l.ranges)))
	for _, r := range l.ranges {
		b = le.AppendUint32(b, uint32(len(r.Name)))
		b = append(b, r.Name...)
		b = append(b, byte(r.Kind), byte(r.Sharing))
		b = le.AppendUint32(b, uint32(len(r.Shape)))
		for _, d := range r.Shape {
			b = le.AppendUint64(b, uint64(d))
		}
	}
	return sha256.Sum256(b)
}
