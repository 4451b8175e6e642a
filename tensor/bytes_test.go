package tensor

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBytesAreLittleEndian(t *testing.T) {
	v := Vector{1, -2, float32(math.Inf(1)), math.Float32frombits(0x7fa12345)}
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0x80, 0x7f, 0x45, 0x23, 0xa1, 0x7f}
	if got := AppendBytes([]byte{7}, v); !bytes.Equal(got, append([]byte{7}, want...)) {
		t.Errorf("AppendBytes: % x", got)
	}
	got := make([]byte, len(want))
	putBytes(got, v)
	if !bytes.Equal(got, want) {
		t.Errorf("putBytes: % x", got)
	}
	if got := AppendBytes(nil, nil); len(got) != 0 {
		t.Errorf("AppendBytes of nothing: % x", got)
	}
}

// TestBytesPortable: both ways of converting give the same bytes, and the same
// bits back, whatever the bits mean. (Under the tag purego they are one way.)
func TestBytesPortable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Uint32(), 0, 20).Draw(t, "bits")
		v := make(Vector, len(bits))
		for i, b := range bits {
			v[i] = math.Float32frombits(b)
		}
		fast, slow := make([]byte, ValueSize*len(v)), make([]byte, ValueSize*len(v))
		putBytes(fast, v)
		putPortable(slow, v)
		if !bytes.Equal(fast, slow) {
			t.Fatalf("putBytes % x, portable % x", fast, slow)
		}
		back, portable := make(Vector, len(v)), make(Vector, len(v))
		FromBytes(back, fast)
		fromPortable(portable, fast)
		for i, b := range bits {
			if got := math.Float32bits(back[i]); got != b {
				t.Fatalf("FromBytes: %#x comes back as %#x", b, got)
			}
			if got := math.Float32bits(portable[i]); got != b {
				t.Fatalf("fromPortable: %#x comes back as %#x", b, got)
			}
		}
		if appended := AppendBytes(nil, v); !slices.Equal(appended, slow) {
			t.Fatalf("AppendBytes % x, portable % x", appended, slow)
		}
	})
}
