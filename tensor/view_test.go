package tensor

import (
	"slices"
	"testing"
)

// TestViewIsTheSameMemory: where a view is given, both names mean the same
// values; where none is, the caller is told.
func TestViewIsTheSameMemory(t *testing.T) {
	want := Vector{1, -2, 0x1p-126}
	code := AppendBytes(nil, want)
	view, ok := View(code)
	if byteView(want) == nil {
		if ok {
			t.Fatal("a view in a build that has none")
		}
		t.Skip("a purego build, or a big-endian machine: values are copied, which other tests cover")
	}
	if !ok {
		t.Fatal("no view of aligned bytes")
	}
	if !slices.Equal(view, want) {
		t.Fatalf("view is %v, want %v", view, want)
	}
	view[1] = 7
	read := make(Vector, len(want))
	if FromBytes(read, code); read[1] != 7 {
		t.Error("writing to the view did not write to the bytes")
	}
	for _, odd := range [][]byte{code[1:5], code[:5]} {
		if _, ok := View(odd); ok {
			t.Errorf("a view of %d bytes at an odd place", len(odd))
		}
	}
	if view, ok := View(nil); !ok || len(view) != 0 {
		t.Error("no view of nothing")
	}
}
