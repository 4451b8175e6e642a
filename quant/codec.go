package quant

import (
	"errors"
	"fmt"
	"strings"
)

// ID is a codec's number on the network. 0 is no codec.
type ID uint8

// The codecs of this version; the package comment lists the reserved numbers.
const (
	Raw  ID = 1
	BF16 ID = 2
)

const (
	rawName  = "raw"
	bf16Name = "bf16"
)

// ErrUnknown: no codec has the name that was asked for.
var ErrUnknown = errors.New("unknown codec")

// Codec is the pair of coders that one exchange uses. Copying it is cheap.
type Codec struct {
	ID   ID
	Name string
	Code Coder // codes the active peer's slice
	Diff Coder // codes the passive peer's difference
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

// Names returns the names of all codecs, most exact first.
func Names() []string {
	all := codecs()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return names
}

func codecs() [2]Codec {
	return [...]Codec{
		{ID: Raw, Name: rawName, Code: rawCoder{}, Diff: rawCoder{}},
		{ID: BF16, Name: bf16Name, Code: bf16Coder{}, Diff: bf16Coder{}},
	}
}
