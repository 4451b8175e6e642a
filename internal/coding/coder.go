package coding

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// ErrCode is wrapped by each error of a decoder, together with one of the errors below.
var ErrCode = errors.New("bad code")

// fault is a reason for which a decoder refuses a code.
type fault string

func (f fault) Error() string        { return string(f) }
func (f fault) Is(target error) bool { return target == ErrCode }

// Reasons for which decoders refuse a code, wrapped with what was attempted.
var (
	// ErrSize: the number of bytes does not fit the number of values.
	ErrSize error = fault("code has the wrong size")
	// ErrNotFinite: a code has a NaN, an infinity, or a scale so large that its values could be infinite.
	ErrNotFinite error = fault("code holds a value that is not finite")
	// ErrScale: the scale of a block is negative, or smaller than any scale.
	ErrScale error = fault("code holds a scale that no block has")
	// ErrPadding: bits that belong to no value are not zero.
	ErrPadding error = fault("code has bits that stand for nothing")
	// ErrSpacing: the spacing of a block in a lattice code is out of bounds.
	ErrSpacing error = fault("code holds a spacing out of bounds")
	// ErrHalf: a block in a lattice code has half precision, which the receiver has not allowed.
	ErrHalf error = fault("block comes as halves where none may")
)

// Coder turns values into bytes and back. It has no state, allocates nothing,
// and is safe for concurrent use.
type Coder interface {
	// Size is the exact number of bytes of the code of n values, n >= 0.
	Size(n int) int
	// Encode writes the code of x to dst, which must have Size(len(x)) bytes and not overlap x. Another length is an
	// error of the program: it panics. Values that are not finite, or whose rounding is not, make a code that Decode
	// refuses.
	Encode(dst []byte, x tensor.Vector)
	// Decode writes the values of code to dst. code comes from another machine, so all of it is checked first: after
	// an error, which wraps one of this package, dst is unchanged. reference is the receiver's own slice of dst's
	// length for coders that decode against it; others ignore it and take nil. dst may be reference, but must not
	// overlap code.
	Decode(dst tensor.Vector, code []byte, reference tensor.Vector) error
}

// labelled is a Coder with a name for people.
type labelled interface {
	Coder
	name() string
}

// checkEncode panics if dst is not exactly as long as the code of n values.
func checkEncode(c labelled, dst []byte, n int) {
	if want := c.Size(n); len(dst) != want {
		panic(fmt.Sprintf("quant: %s code of %d values into %d bytes, not %d", c.name(), n, len(dst), want))
	}
}

// checkSize returns an error if the code does not have the number of bytes that n values need.
func checkSize(c labelled, code []byte, n int) error {
	if want := c.Size(n); len(code) != want {
		return fmt.Errorf("quant: decode %s: %d bytes for %d values, not %d: %w", c.name(), len(code), n, want, ErrSize)
	}
	return nil
}

func blockError(name string, block int, fault error) error {
	return fmt.Errorf("quant: decode %s: block %d: %w", name, block, fault)
}
