package coding

import (
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Class is what ranges of a layout have in common that are coded alike.
type Class uint8

const (
	// Weights of fully connected layers, and whatever fits no other class.
	Weights Class = iota
	// Kernels of convolutions.
	Kernels
	// Tables are embeddings.
	Tables
	// Scales are norms, biases and statistics: few values on which much depends. They always
	// travel with 16 bits or more.
	Scales
)

// String returns the name of the class as a Rule names it.
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

// similarCost is how many times larger a range may be than another of its joint
// layer.
const similarCost = 16

// JointLayer is a group of consecutive layers of one class and of similar size,
// which are coded alike. What lies between them of another class, such as the biases
// between matrices, does not part them if it is of class Scales.
type JointLayer struct {
	// Ranges names what it is made of, in order.
	Ranges []string
	// Class is that of its ranges.
	Class Class
	// Len is the number of values of all its segments.
	Len int
	// Segments are the parts of the vector that belong to it, in order and apart from
	// each other.
	Segments []Segment
}

// Segment is the part [Offset, Offset+Len) of a vector.
type Segment struct{ Offset, Len int }

// String tells what the joint layer is made of.
func (l JointLayer) String() string {
	first, last := l.Ranges[0], l.Ranges[len(l.Ranges)-1]
	if first == last {
		return fmt.Sprintf("%s: %s, %d values", l.Class, first, l.Len)
	}
	return fmt.Sprintf("%s: %s to %s, %d values", l.Class, first, last, l.Len)
}

// JointLayers groups the ranges of a layout that are shared, in the order of their
// first values. All that is of class Scales is one group.
func JointLayers(layout *tensor.Layout) []JointLayer {
	var layers []JointLayer
	scales, open := -1, -1 // the groups that may go on
	size := 0              // of the last range of the open one
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
