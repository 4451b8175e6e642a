package coding

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/tensor"
)

// ID is a codec's number on the network; no codec has 0.
type ID uint8

// Some codecs of this version. Lattice codecs have the numbers from Lattice4to1 to Lattice8to8 (docs/CODECS.md).
const (
	Raw         ID = 1
	BF16        ID = 2
	FP16        ID = 3
	Int8        ID = 4
	Lattice4to1 ID = 16
	Lattice6to4 ID = 26
	Lattice8to4 ID = 30
	Lattice8to8 ID = 31
)

const (
	rawName  = "raw"
	bf16Name = "bf16"
	fp16Name = "fp16"
	int8Name = "int8"
)

// ErrUnknown: no codec has the given name.
var ErrUnknown = errors.New("unknown codec")

// Codec codes both directions of an exchange. Copying it is cheap, and two of one ID are equal.
type Codec struct {
	ID   ID
	Name string
	// Code codes the active peer's slice. In a lattice codec it is fp16, for slices whose ranges are unknown; all
	// other slices use Lattice.
	Code Coder
	// Diff codes the passive peer's difference.
	Diff Coder
	// Lattice codes the active peer's slice, unless it is the zero Lattice.
	Lattice Lattice
}

const (
	mostHalf = 65504   // the largest value of half precision
	mostStep = 0x1p126 // up to this value, neither codes nor scales are infinite
)

// holds tells whether the codec can code values of that magnitude. Half precision, which lattices use for some
// blocks, ends at 65504.
func (c Codec) holds(most float32) bool {
	switch c.ID {
	case Raw:
		return true
	case BF16, Int8:
		return most <= mostStep
	}
	return most <= mostHalf
}

// Encode writes the code of x by Code to dst, in one pass over x, and reports whether the codec can code x. If not,
// the code must not be used.
func (c Codec) Encode(dst []byte, x tensor.Vector) (holds bool) {
	switch coder := c.Code.(type) {
	case Steps:
		return c.holds(coder.encode(dst, x))
	case Float:
		if c.ID != Raw {
			return c.holds(coder.encode(dst, x))
		}
	}
	c.Code.Encode(dst, x)
	return true
}

// EncodeNear is Encode by Lattice: it takes the arguments of Lattice.Encode.
func (c Codec) EncodeNear(dst []byte, x tensor.Vector, ranges []float32, which Set, width Width) (size int, holds bool) {
	size, most := c.Lattice.encode(dst, x, ranges, which, width)
	return size, c.holds(most)
}

// Fit shortens a difference that its code could not hold. norm is its norm or an upper bound of it.
func (c Codec) Fit(diff tensor.Vector, norm float64) {
	most := float32(mostStep)
	if c.ID == FP16 {
		most = mostHalf
	}
	if c.ID == Raw || norm <= float64(most) {
		return
	}
	if peak := tensor.MaxAbs(diff); peak > most {
		tensor.Scale(diff, RoundedDown(float64(most)/float64(peak)))
	}
}

// Left is the least part of a difference's length that remains after coding, for nearly all differences that occur.
// With one bit, codes are never longer than the difference, and keep 0.62 or more when models learn MNIST.
func (c Codec) Left() float64 {
	if steps, ok := c.Diff.(Steps); ok && steps.bits == 1 {
		return 0.5
	}
	return 0.98
}

// bits is the number of bits of a value, in the direction that needs more, including headers of blocks.
func (c Codec) bits() float64 {
	code := c.Code.Size(BlockLen)
	if c.Lattice != (Lattice{}) {
		code = c.Lattice.blockSize(BlockLen, Normal)
	}
	return 8 * float64(max(code, c.Diff.Size(BlockLen))) / BlockLen
}

// Whole tells whether the codec keeps 16 bits or more of each value.
func (c Codec) Whole() bool { return c.ID == Raw || c.ID == BF16 || c.ID == FP16 }

// ByName returns the codec of a name. The error wraps ErrUnknown and lists the existing names.
func ByName(name string) (Codec, error) {
	for id := range Lattice8to8 + 1 {
		if c, known := ByID(id); known && c.Name == name {
			return c, nil
		}
	}
	return Codec{}, fmt.Errorf("quant: %w %q: have %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// ByID returns the codec of a number, or false if this version has no such codec.
func ByID(id ID) (Codec, bool) {
	switch id {
	case Raw:
		return Codec{ID: Raw, Name: rawName, Code: Float(Raw), Diff: Float(Raw)}, true
	case BF16:
		return Codec{ID: BF16, Name: bf16Name, Code: Float(BF16), Diff: Float(BF16)}, true
	case FP16:
		return Codec{ID: FP16, Name: fp16Name, Code: Float(FP16), Diff: Float(FP16)}, true
	case Int8:
		return Codec{ID: Int8, Name: int8Name, Code: Steps{bits: 8}, Diff: Steps{bits: 8}}, true
	}
	if id < Lattice4to1 || id > Lattice8to8 {
		return Codec{}, false
	}
	at := id - Lattice4to1
	l := Lattice{code: [...]uint8{4, 5, 6, 8}[at/4], diff: [...]uint8{1, 3, 4, 8}[at%4]}
	names := [...]string{
		"lattice4+1", "lattice4+3", "lattice4+4", "lattice4+8",
		"lattice5+1", "lattice5+3", "lattice5+4", "lattice5+8",
		"lattice6+1", "lattice6+3", "lattice6+4", "lattice6+8",
		"lattice8+1", "lattice8+3", "lattice8+4", "lattice8+8",
	}
	return Codec{ID: id, Name: names[at], Code: Float(FP16), Diff: l.Diff(), Lattice: l}, true
}

// Names returns the names of all codecs: first the simple ones, then those of lattices, each from the most to the
// fewest bits.
func Names() []string {
	names := []string{rawName, bf16Name, fp16Name, int8Name}
	for id := Lattice8to8; id >= Lattice4to1; id-- {
		c, _ := ByID(id)
		names = append(names, c.Name)
	}
	return names
}
