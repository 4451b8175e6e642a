package tensor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a layout.
const (
	// MaxRanges is how many ranges a layout may have.
	MaxRanges = 1 << 16
	// MaxNameLen is how many bytes a range's name may have.
	MaxNameLen = 256
	// MaxDims is how many dimensions a range may have.
	MaxDims = 8
	// MaxLen is how many values a layout may have: as many as a byte slice can
	// hold.
	MaxLen = int(^uint(0)>>1) / ValueSize
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

// NewLayout lays out ranges one after the other. The specs are copied. An error
// joins everything that is wrong with them.
func NewLayout(specs ...Spec) (*Layout, error) {
	if len(specs) > MaxRanges {
		return nil, fmt.Errorf("tensor: layout of %d ranges: the limit is %d", len(specs), MaxRanges)
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
		if n > MaxLen-l.length {
			faults = append(faults, fmt.Errorf("range %d (%q): the layout is longer than %d values", i, s.Name, MaxLen))
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

// validate returns the number of values of s, and all that is wrong with it.
func (s *Spec) validate() (int, error) {
	var faults []error
	switch {
	case s.Name == "":
		faults = append(faults, errors.New("the name is empty"))
	case s.Name == reservedName:
		faults = append(faults, errors.New("the name is reserved by the safetensors format"))
	case len(s.Name) > MaxNameLen:
		faults = append(faults, fmt.Errorf("the name has %d bytes: the limit is %d", len(s.Name), MaxNameLen))
	case !utf8.ValidString(s.Name):
		faults = append(faults, errors.New("the name is not UTF-8"))
	}
	if s.Kind > Embedding {
		faults = append(faults, fmt.Errorf("unknown %v", s.Kind))
	}
	if s.Sharing > Local {
		faults = append(faults, fmt.Errorf("unknown %v", s.Sharing))
	}
	n, err := shapeLen(s.Shape)
	if err != nil {
		faults = append(faults, err)
	}
	return n, errors.Join(faults...)
}

// shapeLen returns the number of values of a shape: the product of its
// dimensions.
func shapeLen(shape []int) (int, error) {
	if len(shape) > MaxDims {
		return 0, fmt.Errorf("%d dimensions: the limit is %d", len(shape), MaxDims)
	}
	n := 1
	for _, d := range shape {
		if d <= 0 {
			return 0, fmt.Errorf("shape %v: dimensions must be at least 1", shape)
		}
		if d > MaxLen/n {
			return 0, fmt.Errorf("shape %v: more than %d values", shape, MaxLen)
		}
		n *= d
	}
	return n, nil
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
