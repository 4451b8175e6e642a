package quant

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/internal/coding"
	"github.com/seed-97356399/murmuration/tensor"
)

var (
	// ErrUnknown: no codec has the given name.
	ErrUnknown = coding.ErrUnknown
	// ErrCode: the bytes are no code of that many values.
	ErrCode = coding.ErrCode
	// ErrApart: the difference of two slices is larger than the sender of the code assumed, or than any code of it.
	ErrApart = errors.New("the slices are too far apart")
)

// BlockLen is the number of values in a block; the last block of a slice may have fewer.
const BlockLen = coding.BlockLen

// Codec codes both directions of an exchange of a slice: the active peer's values, and the difference with which the
// passive peer answers. Peers choose codecs by a Policy; a program that exchanges slices itself takes one by its
// name. Copying a Codec is cheap, and two of one name are equal. It has no state, and is safe for concurrent use.
type Codec struct{ codec coding.Codec }

// ByName returns the codec of a name. The error wraps ErrUnknown and lists the existing names.
func ByName(name string) (Codec, error) {
	codec, err := coding.ByName(name)
	return Codec{codec}, err
}

// ByID returns the codec of a number on the network, or false if this version has no such
// codec.
func ByID(id uint8) (Codec, bool) {
	codec, known := coding.ByID(coding.ID(id))
	return Codec{codec}, known
}

// Names returns the names of all codecs: first the simple ones, then those of lattices, each from the most to the
// fewest bits.
func Names() []string { return coding.Names() }

// Name is the codec's name in policies.
func (c Codec) Name() string { return c.codec.Name }

// ID is the codec's number on the network.
func (c Codec) ID() uint8 { return uint8(c.codec.ID) }

// Lattice tells whether codes are decoded against the receiver's own values, which must be near the sender's.
func (c Codec) Lattice() bool { return c.codec.Lattice != coding.Lattice{} }

// MaxSize bounds the bytes of the code of n values.
func (c Codec) MaxSize(n int) int {
	if c.Lattice() {
		return c.codec.Lattice.MaxSize(n)
	}
	return c.codec.Code.Size(n)
}

// DiffSize is the number of bytes of the code of a difference of n values.
func (c Codec) DiffSize(n int) int { return c.codec.Diff.Size(n) }

// Encode writes the code of x to dst, which has MaxSize(len(x)) bytes and does not overlap x, and returns its length.
// For a lattice, apart has for each block of BlockLen values the largest difference between a value of x and the
// receiver's. Where it is 0 (unknown), or apart is nil, values take 16 bits. Values that are not finite, or whose
// rounding is not, make a code that the receiver refuses.
func (c Codec) Encode(dst []byte, x tensor.Vector, apart []float32) int {
	if !c.Lattice() {
		size := c.codec.Code.Size(len(x))
		c.codec.Code.Encode(dst[:size], x)
		return size
	}
	if apart == nil {
		return c.codec.Lattice.Encode(dst, x, nil, nil, coding.Halves)
	}
	var room [64]float32 // enough for slices of the default length
	ranges := room[:0]
	for _, r := range apart {
		ranges = append(ranges, coding.RangeOf(coding.RangeCode(r))) // as peers send it
	}
	return c.codec.Lattice.Encode(dst, x, ranges, nil, coding.Normal)
}

// Decode writes the values of code to dst. For lattices, reference is the receiver's own slice of dst's length, with
// finite values; for other codecs it is nil. The code comes from another machine, so all of it is checked first:
// after an error that wraps ErrCode, dst is unchanged. After ErrApart, blocks that are too far apart have the values
// of reference. dst may be reference, but must not overlap code.
func (c Codec) Decode(dst tensor.Vector, code []byte, reference tensor.Vector) error {
	if !c.Lattice() {
		return c.codec.Code.Decode(dst, code, reference)
	}
	var room sets
	pass := room.pass(len(dst))
	if err := c.codec.Lattice.Decode(dst, code, reference, pass); err != nil {
		return err
	}
	return apart(c.codec, pass)
}

// Answer decodes a code against the receiver's own values, and writes the code of share (0 to 1) times the
// difference: the sender's values minus the receiver's. diff has DiffSize(len(own)) bytes. If the sender subtracts
// the difference and the receiver adds it, the sum of the two models stays the same, whatever the codec's error.
// scratch has own's length and is overwritten. After an error, which wraps ErrCode or ErrApart, diff is undefined.
func (c Codec) Answer(diff, code []byte, own, scratch tensor.Vector, share float32) error {
	if !c.Lattice() {
		if err := c.codec.Code.Decode(scratch, code, own); err != nil {
			return err
		}
		tensor.ScaledDifference(scratch, share, scratch, own)
		c.codec.Diff.Encode(diff, scratch)
		return c.held(diff, scratch)
	}
	var room sets
	pass := room.pass(len(own))
	if _, err := c.codec.Lattice.Answer(diff, code, own, pass); err != nil {
		return err
	}
	c.codec.Lattice.Diff().Shrink(diff, len(own), float64(share))
	return cmp.Or(apart(c.codec, pass), c.held(diff, scratch))
}

// held returns an error if a difference is so large that no code holds it: it could not be read.
func (c Codec) held(diff []byte, scratch tensor.Vector) error {
	if c.DecodeDiff(scratch, diff) != nil {
		return fmt.Errorf("quant: answer by %s: %w", c.Name(), ErrApart)
	}
	return nil
}

// DecodeDiff writes the values of a difference's code to dst, as Decode does. Both sides get the same float32 values:
// one adds them and the other subtracts them.
func (c Codec) DecodeDiff(dst tensor.Vector, diff []byte) error {
	return c.codec.Diff.Decode(dst, diff, nil)
}

// sets is memory for two sets of blocks, for slices of the default length.
type sets [2][8]byte

// pass is a pass over all blocks of n values.
func (s *sets) pass(n int) coding.Pass {
	size := coding.SetSize(n)
	halves, failed := s[0][:], s[1][:]
	if size > len(halves) {
		halves, failed = make([]byte, size), make([]byte, size)
	}
	for i := range halves {
		halves[i] = 0xff
	}
	return coding.Pass{Width: coding.Normal, Halves: halves, Failed: failed[:size]}
}

// apart returns an error if blocks of a pass have failed.
func apart(codec coding.Codec, pass coding.Pass) error {
	if failed := pass.Failed.Count(); failed > 0 {
		return fmt.Errorf("quant: decode %s: %d blocks: %w", codec.Name, failed, ErrApart)
	}
	return nil
}
