package quant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-97356399/murmuration/tensor"
)

// ID is a codec's number on the network. 0 is no codec.
type ID uint8

// The codecs of this version. LatticeAtoB has A bits a value for the code and B for
// the difference.
const (
	Raw         ID = 1
	BF16        ID = 2
	FP16        ID = 3
	Int8        ID = 4
	Lattice4to1 ID = 16 + iota - 4
	Lattice4to3
	Lattice4to4
	Lattice4to8
	Lattice5to1
	Lattice5to3
	Lattice5to4
	Lattice5to8
	Lattice6to1
	Lattice6to3
	Lattice6to4
	Lattice6to8
	Lattice8to1
	Lattice8to3
	Lattice8to4
	Lattice8to8
)

const (
	rawName  = "raw"
	bf16Name = "bf16"
	fp16Name = "fp16"
	int8Name = "int8"
)

// ErrUnknown: no codec has the name that was asked for.
var ErrUnknown = errors.New("unknown codec")

// Codec is what one exchange uses. Copying it is cheap, and two of one ID are equal.
type Codec struct {
	ID   ID
	Name string
	// Code codes the active peer's slice. That of a lattice codec is fp16, for
	// slices of which no range is known; all others take Lattice.
	Code Coder
	// Diff codes the passive peer's difference.
	Diff Coder
	// Lattice codes the active peer's slice if it is not the zero Lattice.
	Lattice Lattice
}

const (
	mostHalf = 65504   // the largest value of half precision
	mostStep = 0x1p126 // no code of a value up to here is infinite, nor is its scale
)

// Holds tells whether the codec can code values: half precision, in which lattices code
// what they have to, ends at 65504.
func (c Codec) Holds(x tensor.Vector) bool {
	switch c.ID {
	case Raw:
		return true
	case BF16, Int8:
		return tensor.MaxAbs(x) <= mostStep
	}
	return tensor.MaxAbs(x) <= mostHalf
}

// Fit makes a difference shorter, if its code could not hold it otherwise. Norm is its
// norm, or more.
func (c Codec) Fit(diff tensor.Vector, norm float64) {
	most := float32(mostStep)
	if c.ID == FP16 {
		most = mostHalf
	}
	if c.ID == Raw || norm <= float64(most) {
		return
	}
	if peak := tensor.MaxAbs(diff); peak > most {
		tensor.Scale(diff, shrunk(1, float64(most)/float64(peak)))
	}
}

// bits are those of a value in whichever direction takes more, headers of blocks
// included.
func (c Codec) bits() float64 {
	code := c.Code.Size(BlockLen)
	if c.Lattice != (Lattice{}) {
		code = c.Lattice.blockSize(BlockLen, Normal)
	}
	return 8 * float64(max(code, c.Diff.Size(BlockLen))) / BlockLen
}

// ByName returns the codec of a name. The error wraps ErrUnknown and lists the
// names that exist.
func ByName(name string) (Codec, error) {
	for _, c := range codecs() {
		if c.Name == name {
			return c, nil
		}
	}
	return Codec{}, fmt.Errorf("quant: %w %q: have %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// ByID returns the codec of a number, or false if this version has none such.
func ByID(id ID) (Codec, bool) {
	for _, c := range codecs() {
		if c.ID == id {
			return c, true
		}
	}
	return Codec{}, false
}

// Names returns the names of all codecs: the simple ones, and those of lattices,
// both from the most to the fewest bits.
func Names() []string {
	all := codecs()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return names
}

func codecs() [20]Codec {
	return [...]Codec{
		{ID: Raw, Name: rawName, Code: rawCoder{}, Diff: rawCoder{}},
		{ID: BF16, Name: bf16Name, Code: bf16Coder{}, Diff: bf16Coder{}},
		{ID: FP16, Name: fp16Name, Code: fp16Coder{}, Diff: fp16Coder{}},
		{ID: Int8, Name: int8Name, Code: Steps{bits: 8}, Diff: Steps{bits: 8}},
		latticeCodec(Lattice8to8, "lattice8+8", Lattice{8, 8}),
		latticeCodec(Lattice8to4, "lattice8+4", Lattice{8, 4}),
		latticeCodec(Lattice8to3, "lattice8+3", Lattice{8, 3}),
		latticeCodec(Lattice8to1, "lattice8+1", Lattice{8, 1}),
		latticeCodec(Lattice6to8, "lattice6+8", Lattice{6, 8}),
		latticeCodec(Lattice6to4, "lattice6+4", Lattice{6, 4}),
		latticeCodec(Lattice6to3, "lattice6+3", Lattice{6, 3}),
		latticeCodec(Lattice6to1, "lattice6+1", Lattice{6, 1}),
		latticeCodec(Lattice5to8, "lattice5+8", Lattice{5, 8}),
		latticeCodec(Lattice5to4, "lattice5+4", Lattice{5, 4}),
		latticeCodec(Lattice5to3, "lattice5+3", Lattice{5, 3}),
		latticeCodec(Lattice5to1, "lattice5+1", Lattice{5, 1}),
		latticeCodec(Lattice4to8, "lattice4+8", Lattice{4, 8}),
		latticeCodec(Lattice4to4, "lattice4+4", Lattice{4, 4}),
		latticeCodec(Lattice4to3, "lattice4+3", Lattice{4, 3}),
		latticeCodec(Lattice4to1, "lattice4+1", Lattice{4, 1}),
	}
}

func latticeCodec(id ID, name string, l Lattice) Codec {
	return Codec{ID: id, Name: name, Code: fp16Coder{}, Diff: l.Diff(), Lattice: l}
}
