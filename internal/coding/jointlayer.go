package coding

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Class is a group of ranges of a layout that are coded alike.
type Class uint8

const (
	// Weights of fully connected layers, and ranges of no other class.
	Weights Class = iota
	// Kernels of convolutions.
	Kernels
	// Tables are embeddings.
	Tables
	// Scales are norms, biases and statistics: few values with much effect. They are always coded with 16 bits or
	// more.
	Scales
)

// String returns the name of the class in a Rule.
func (c Class) String() string {
	switch c {
	case Weights:
		return "dense"
	case Kernels:
		return "conv"
	case Tables:
		return "embedding"
	case Scales:
		return "norm+bias"
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

func classOf(k tensor.Kind) Class {
	switch k {
	case tensor.Conv:
		return Kernels
	case tensor.Norm, tensor.Bias, tensor.Statistic:
		return Scales
	case tensor.Embedding:
		return Tables
	}
	return Weights
}

// similarCost bounds the ratio of the sizes of neighbouring ranges in a joint layer.
const similarCost = 16

// JointLayer is a group of consecutive layers of one class and of similar size, which are coded alike. Ranges of
// class Scales between them, such as the biases between matrices, do not separate them.
type JointLayer struct {
	// Ranges has the names of its ranges, in order.
	Ranges []string
	// Class is the class of its ranges.
	Class Class
	// Len is the number of values of all its segments.
	Len int
	// Segments are the parts of the vector that belong to it, in order and not adjacent.
	Segments []Segment
}

// Segment is the part [Offset, Offset+Len) of a vector.
type Segment struct{ Offset, Len int }

// String describes the joint layer.
func (l JointLayer) String() string {
	first, last := l.Ranges[0], l.Ranges[len(l.Ranges)-1]
	if first == last {
		return fmt.Sprintf("%s: %s, %d values", l.Class, first, l.Len)
	}
	return fmt.Sprintf("%s: %s to %s, %d values", l.Class, first, last, l.Len)
}

// JointLayers groups the shared ranges of a layout, in the order of their first values. All ranges of class Scales
// are one group.
func JointLayers(layout *tensor.Layout) []JointLayer {
	var layers []JointLayer
	scales, open := -1, -1 // the groups that the next range may join
	size := 0              // length of the last range in the open group
	for i := range layout.Count() {
		at := layout.At(i)
		if at.Sharing != tensor.Shared {
			continue
		}
		class := classOf(at.Kind)
		group := &open
		if class == Scales {
			group = &scales
		} else {
			if open >= 0 && (layers[open].Class != class || !similar(size, at.Len)) {
				open = -1
			}
			size = at.Len
		}
		if *group < 0 {
			*group = len(layers)
			layers = append(layers, JointLayer{Class: class})
		}
		layers[*group].take(at)
	}
	return layers
}

func similar(a, b int) bool { return a/similarCost <= b && b/similarCost <= a }

func (l *JointLayer) take(at tensor.Range) {
	l.Ranges = append(l.Ranges, at.Name)
	l.Len += at.Len
	if n := len(l.Segments); n > 0 && l.Segments[n-1].Offset+l.Segments[n-1].Len == at.Offset {
		l.Segments[n-1].Len += at.Len
		return
	}
	l.Segments = append(l.Segments, Segment{at.Offset, at.Len})
}
