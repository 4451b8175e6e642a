package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Shape is the shape of a picture: rows of pixels, each with one value for every channel.
type Shape struct {
	Height, Width, Channels int
}

// Values is the number of values of a picture.
func (s Shape) Values() int { return s.Height * s.Width * s.Channels }

// maxClasses is the number of classes that a label of one byte allows.
const maxClasses = 256

// Set is a labelled set of pictures (one byte for each value), of rows of numbers, or of windows of a text. It does
// not change after it is made, and is safe for concurrent use.
type Set struct {
	pixels  []uint8
	numbers tensor.Vector // for rows, which have no pixels
	text    *corpus       // for texts, whose labels are their bytes
	labels  []uint8
	shape   Shape
	inputs  int
	classes int
	levels  levels
	norm    []Normalization // from which levels was made
}

// NewSet makes a set of len(labels) pictures of one shape, which follow each other in pixels; labels are below
// classes. The set keeps both slices, which must not change any more. norm is one normalization, or one for each
// channel.
func NewSet(pixels, labels []uint8, shape Shape, classes int, norm ...Normalization) (*Set, error) {
	inputs := shape.Values()
	if inputs < 1 || shape.Height < 1 || shape.Channels < 1 || classes < 1 || classes > maxClasses {
		return nil, fmt.Errorf("dataset: a set of %d pixels a picture and %d classes: want at least 1 pixel and 1 to 256 classes", inputs, classes)
	}
	if len(pixels) != len(labels)*inputs {
		return nil, fmt.Errorf("dataset: %d labels of %d pixels each need %d bytes, got %d", len(labels), inputs, len(labels)*inputs, len(pixels))
	}
	tables, err := newLevels(shape.Channels, norm)
	if err != nil {
		return nil, err
	}
	for i, label := range labels {
		if int(label) >= classes {
			return nil, fmt.Errorf("dataset: label %d of picture %d: there are %d classes", label, i, classes)
		}
	}
	return &Set{pixels: pixels, labels: labels, shape: shape, inputs: inputs, classes: classes, levels: tables, norm: norm}, nil
}

// Len is the number of pictures, rows or windows.
func (s *Set) Len() int {
	if s.text != nil {
		return len(s.text.starts)
	}
	return len(s.labels)
}

// IsText tells whether the set has windows of a text.
func (s *Set) IsText() bool { return s.text != nil }

// Shape is the shape of each picture.
func (s *Set) Shape() Shape { return s.shape }

// Inputs is the number of values of a picture.
func (s *Set) Inputs() int { return s.inputs }

// Classes is the number of classes.
func (s *Set) Classes() int { return s.classes }

// Norm is the normalization of a set of pictures; nil for rows and texts.
func (s *Set) Norm() []Normalization { return s.norm }

// Label is the class of picture i.
func (s *Set) Label(i int) int { return int(s.labels[i]) }

// Image is picture i as levels, row by row, with a pixel's channels side by side; nil in a set of rows. The slice
// belongs to the set and must not be changed.
func (s *Set) Image(i int) []uint8 {
	if s.pixels == nil {
		return nil
	}
	return s.pixels[i*s.inputs : (i+1)*s.inputs : (i+1)*s.inputs]
}

// Subset is a set with copies of the pictures of the indices, in that order.
func (s *Set) Subset(indices []int32) *Set {
	if s.text != nil {
		return s.text.subset(indices).set()
	}
	sub := &Set{
		labels:  make([]uint8, 0, len(indices)),
		shape:   s.shape,
		inputs:  s.inputs,
		classes: s.classes,
		levels:  s.levels,
		norm:    s.norm,
	}
	if s.numbers == nil {
		sub.pixels = make([]uint8, 0, len(indices)*s.inputs)
	} else {
		sub.numbers = make(tensor.Vector, 0, len(indices)*s.inputs)
	}
	for _, i := range indices {
		sub.pixels = append(sub.pixels, s.Image(int(i))...)
		sub.numbers = append(sub.numbers, s.row(int(i))...)
		sub.labels = append(sub.labels, s.labels[i])
	}
	return sub
}

// Spread is a set of at most most pictures, evenly spread over the set, which may be sorted.
func (s *Set) Spread(most int) *Set {
	indices := make([]int32, min(most, s.Len()))
	for i := range indices {
		indices[i] = int32(i * s.Len() / len(indices))
	}
	return s.Subset(indices)
}

// printed bounds how many pictures a fingerprint covers.
const printed = 4096

// Fingerprint is a hash to tell sets apart, over pictures evenly spread over the set, their labels and their shape.
func (s *Set) Fingerprint() (sum [8]byte) {
	some := s.Spread(printed)
	hash := sha256.New()
	fmt.Fprintln(hash, s.shape, s.classes, s.Len())
	hash.Write(some.pixels)
	_ = binary.Write(hash, binary.LittleEndian, []float32(some.numbers)) // a hash never fails
	hash.Write(some.labels)
	if some.text != nil {
		hash.Write(some.text.all())
	}
	return [8]byte(hash.Sum(nil))
}

// Batch is a number of normalized pictures with their labels, as models take them. Its slices grow to the size of the
// largest batch and are reused: filling a batch again overwrites it.
type Batch struct {
	// X holds Len pictures, one row after the other.
	X tensor.Vector
	// Labels holds the class of each; of a text, the byte that follows each byte of X.
	Labels []uint8

	each int // labels of an example; 0 means one
}

// Len is the number of pictures, rows or windows in the batch.
func (b *Batch) Len() int { return len(b.Labels) / max(b.each, 1) }

// Resize makes room for n pictures.
func (b *Batch) Resize(n, inputs int) { b.resize(n, inputs, 1) }

// ResizeAs makes room for n examples like the one of another batch.
func (b *Batch) ResizeAs(one *Batch, n int) { b.resize(n, len(one.X), len(one.Labels)) }

func (b *Batch) resize(n, inputs, labels int) {
	if cap(b.Labels) < n*labels || cap(b.X) < n*inputs {
		b.Labels = make([]uint8, n*labels)
		b.X = make(tensor.Vector, n*inputs)
	}
	b.Labels, b.X, b.each = b.Labels[:n*labels], b.X[:n*inputs], labels
}

// row is the memory of one picture.
func (b *Batch) row(i, inputs int) tensor.Vector { return b.X[i*inputs : (i+1)*inputs] }

// labels is the memory of the labels of one example.
func (b *Batch) labels(i int) []uint8 { return b.Labels[i*b.each : (i+1)*b.each] }

// Fill writes pictures from to to-1 of the set into the batch.
func (s *Set) Fill(b *Batch, from, to int) {
	if t := s.text; t != nil {
		b.resize(to-from, t.window, t.window)
		for i, start := range t.starts[from:to] {
			t.show(b.row(i, t.window), b.labels(i), int(start))
		}
		return
	}
	b.Resize(to-from, s.inputs)
	for i := from; i < to; i++ {
		b.Labels[i-from] = s.labels[i]
		s.show(b.row(i-from, s.inputs), i, nil)
	}
}
