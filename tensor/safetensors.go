package tensor

import (
	"errors"
	"fmt"
	"strings"
)

// maxHeader is how many bytes the header of a safetensors file may have, as in the format's own implementation.
const maxHeader = 100_000_000

// Errors of reading safetensors files, beside *FormatError.
var (
	// errDtype: values of a tensor's element type are not read; wrapped in a *FormatError that
	// names tensor and type.
	errDtype = errors.New("element type is none of F32, F16, BF16, I64")
	// ErrMismatch: a valid file has other names or shapes than the layout it is loaded into.
	ErrMismatch = errors.New("file does not fit the layout")
)

// FormatError is a fault of a safetensors file.
type FormatError struct {
	Tensor string // name of the tensor concerned; empty if none is
	Reason string
	Err    error // that the element type is not read, io.ErrUnexpectedEOF if the file was cut short, or nil
}

func (e *FormatError) Error() string {
	// Names come from the file, so they are quoted and shortened.
	var b strings.Builder
	b.WriteString("tensor: bad safetensors file: ")
	if e.Tensor != "" {
		fmt.Fprintf(&b, "tensor %.64q: ", e.Tensor)
	}
	b.WriteString(e.Reason)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

func badFile(tensor, format string, args ...any) error {
	return &FormatError{Tensor: tensor, Reason: fmt.Sprintf(format, args...)}
}
