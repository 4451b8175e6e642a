package quant

import (
	"errors"
	"fmt"

	"github.com/seed-97356399/murmuration/tensor"
)

// Errors that Decode wraps with what was attempted.
var (
	// ErrSize: a code has not the number of bytes that its values need.
	ErrSize = errors.New("code has the wrong size")
	// ErrNotFinite: a code holds a NaN or an infinity.
	ErrNotFinite = errors.New("code holds a value that is not finite")
)

// Coder turns values into bytes and back. It has no state, allocates nothing,
// and is safe for concurrent use.
type Coder interface {
	// Size is the exact number of bytes of the code of n values, n >= 0.
	Size(n int) int
	// Encode writes the code of x to dst, which must hold Size(len(x)) bytes and
	// not overlap x; another length is an error of the program and panics.
	// Values that are not finite, or that round to none, make a code that Decode
	// refuses.
	Encode(dst []byte, x tensor.Vector)
	// Decode writes the values of code to dst. Code comes from another machine:
	// it is checked as a whole, and on an error, which wraps ErrSize or
	// ErrNotFinite, dst is as it was. Reference is the receiver's own slice of
	// dst's length, for coders that decode against it; others ignore it and
	// take nil. Dst may be reference, but must not overlap code.
	Decode(dst tensor.Vector, code []byte, reference tensor.Vector) error
}

// checkEncode panics if dst is not exactly as long as the code of n values.
func checkEncode(name string, dst []byte, size, n int) {
	if len(dst) != size {
		panic(fmt.Sprintf("quant: %s code of %d values into %d bytes, not %d", name, n, len(dst), size))
	}
}

func sizeError(name string, got, want, n int) error {
	return fmt.Errorf("quant: decode %s: %d bytes for %d values, not %d: %w", name, got, n, want, ErrSize)
}

func notFiniteError(name string, n int) error {
	return fmt.Errorf("quant: decode %s: slice of %d values: %w", name, n, ErrNotFinite)
}

// Viewer is a Coder whose codes are the values as they lie in memory, so that
// they need not be copied to be computed on.
type Viewer interface {
	Coder
	// View returns a code as the vector it is, over the same memory. It reports
	// false where that is impossible (see tensor.View): use Encode and Decode then.
	// Nothing is checked: the size and that the values are finite are the caller's
	// business.
	View(code []byte) (tensor.Vector, bool)
}
