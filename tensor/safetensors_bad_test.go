package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// file returns a safetensors file of a header as it stands and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func f32(name, shape string, begin, end int) string {
	return fmt.Sprintf(`%q:{"dtype":"F32","shape":%s,"data_offsets":[%d,%d]}`, name, shape, begin, end)
}

type badFileCase struct {
	name string
	file []byte
	want string // part of the error's text
	is   error  // what the error wraps; nil if nothing
}

func badFiles() []badFileCase {
	a := f32("a", "[2]", 0, 8)
	return []badFileCase{
		{"empty file", nil, "ends within the header's length", io.ErrUnexpectedEOF},
		{"half a length", []byte{1, 0, 0}, "ends within the header's length", io.ErrUnexpectedEOF},
		{"length above the limit", binary.LittleEndian.AppendUint64(nil, maxHeader+1), "the limit is 100000000: it is damaged, or no safetensors file", nil},
		{"length of all ones", bytes.Repeat([]byte{0xff}, 8), "the limit is", nil},
		{"header cut short", file("{"+a+"}", 0)[:20], "ends within the header", io.ErrUnexpectedEOF},
		{"no header", file("", 0), "does not begin with {", nil},
		{"array", file("[]", 0), "does not begin with {", nil},
		{"space before", file(" {}", 0), "does not begin with {", nil},
		{"newline after", file("{}\n", 0), "padded with spaces", nil},
		{"two objects", file("{}{}", 0), "not a JSON object", nil},
		{"trailing comma", file("{"+a+",}", 8), "not a JSON object", nil},
		{"cut object", file("{"+a, 8), "not a JSON object", nil},
		{"not UTF-8", file("{"+strings.ReplaceAll(a, "a", "\xff")+"}", 8), "UTF-8", nil},

		{"duplicate name", file("{"+a+","+f32("a", "[2]", 8, 16)+"}", 16), `"a": the name is there twice`, nil},
		{"duplicate name, escaped", file("{"+a+`,"\u0061"`+a[3:]+"}", 8), "twice", nil},
		{"duplicate key", file(`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), "dtype is there twice", nil},
		{"empty name", file("{"+f32("", "[2]", 0, 8)+"}", 8), "a name has 0 bytes", nil},
		{"long name", file("{"+f32(strings.Repeat("x", 257), "[2]", 0, 8)+"}", 8), "a name has 257 bytes", nil},
		{"unknown key", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}}`, 8), `unknown key "more"`, nil},
		{"no dtype", file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8), "dtype is missing", nil},
		{"no shape", file(`{"a":{"dtype":"F32","data_offsets":[0,8]}}`, 8), "shape is missing", nil},
		{"no offsets", file(`{"a":{"dtype":"F32","shape":[2]}}`, 8), "data_offsets is missing", nil},
		{"entry is no object", file(`{"a":[1]}`, 8), "does not begin with {", nil},
		{"dtype is no string", file(`{"a":{"dtype":4,"shape":[2],"data_offsets":[0,8]}}`, 8), "dtype is no string", nil},
		{"shape is null", file("{"+f32("a", "null", 0, 8)+"}", 8), "shape does not begin with [", nil},

		{"integer type", file(strings.ReplaceAll("{"+a+"}", "F32", "I32"), 8), `"a": dtype "I32"`, errDtype},
		{"double", file(strings.ReplaceAll("{"+a+"}", "F32", "F64"), 8), `dtype "F64"`, errDtype},
		{"lower case", file(strings.ReplaceAll("{"+a+"}", "F32", "f32"), 8), `dtype "f32"`, errDtype},

		{"negative dimension", file("{"+f32("a", "[-2]", 0, 8)+"}", 8), `"-2" is no integer`, nil},
		{"fraction", file("{"+f32("a", "[2.0]", 0, 8)+"}", 8), `"2.0" is no integer`, nil},
		{"exponent", file("{"+f32("a", "[2e0]", 0, 8)+"}", 8), `"2e0" is no integer`, nil},
		{"number as string", file("{"+f32("a", `["2"]`, 0, 8)+"}", 8), "no number", nil},
		{"nested shape", file("{"+f32("a", `[[2]]`, 0, 8)+"}", 8), "no number", nil},
		{"above 64 bits", file("{"+f32("a", "[18446744073709551616]", 0, 8)+"}", 8), "no integer", nil},
		{"above an int", file("{"+f32("a", "[9223372036854775808]", 0, 8)+"}", 8), "more than", nil},
		{"product overflows to 2", file("{"+f32("a", "[4294967296,4294967296,2]", 0, 8)+"}", 8), "more than", nil},
		{"bytes overflow to 8", file("{"+f32("a", "[4611686018427387906]", 0, 8)+"}", 8), "more than", nil},
		{"no values", file("{"+f32("a", "[0]", 0, 0)+"}", 0), "at least 1", nil},
		{"too many dimensions", file("{"+f32("a", "[1,1,1,1,1,1,1,1,1]", 0, 4)+"}", 4), "more than 8 numbers", nil},

		{"one offset", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8]}}`, 8), "1 data_offsets", nil},
		{"three offsets", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), "more than 2 numbers", nil},
		{"negative offset", file("{"+f32("a", "[2]", -8, 0)+"}", 8), "no integer", nil},
		{"ends before it begins", file("{"+f32("a", "[2]", 8, 0)+"}", 8), "before it begins", nil},
		{"too few bytes", file("{"+f32("a", "[2]", 0, 4)+"}", 8), "needs 8 bytes", nil},
		{"hole at the start", file("{"+f32("a", "[2]", 4, 12)+"}", 12), "hole of 4 bytes", nil},
		{"hole", file("{"+a+","+f32("b", "[1]", 12, 16)+"}", 16), `"b": a hole of 4 bytes`, nil},
		{"overlap", file("{"+a+","+f32("b", "[2]", 4, 12)+"}", 12), `"b": data at [4, 12) overlaps`, nil},
		{"same data twice", file("{"+a+","+f32("b", "[2]", 0, 8)+"}", 8), "overlaps", nil},

		{"data cut short", file("{"+a+"}", 7), "ends within the tensors' data", io.ErrUnexpectedEOF},
		{"no data", file("{"+a+"}", 0), "ends within the tensors' data", io.ErrUnexpectedEOF},
		{"bytes left over", file("{"+a+"}", 9), "bytes follow", nil},
		{"bytes after an empty file", file("{}", 1), "bytes follow", nil},

		{"metadata is no object", file(`{"__metadata__":"x"}`, 0), "__metadata__ does not begin with {", nil},
		{"metadata is nested", file(`{"__metadata__":{"a":{"b":"c"}}}`, 0), "is no string", nil},
		{"metadata holds a number", file(`{"__metadata__":{"a":1}}`, 0), "is no string", nil},
		{"metadata key twice", file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `"a" is there twice`, nil},
		{"metadata twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), "twice", nil},
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range badFiles() {
		t.Run(c.name, func(t *testing.T) {
			into := counting(mustLayout(t, Spec{Name: "a", Shape: []int{2}}))
			_, _, readErr := ReadSafetensors(bytes.NewReader(c.file))
			_, loadErr := into.LoadSafetensors(bytes.NewReader(c.file))
			if !slices.Equal(into.Vector(), Vector{1, 2}) {
				t.Errorf("a bad file was loaded: %v", into.Vector())
			}
			if loadErr == nil {
				t.Error("LoadSafetensors gives no error")
			}
			var bad *FormatError
			if !errors.As(readErr, &bad) {
				t.Fatalf("error %v is no FormatError", readErr)
			}
			if !strings.Contains(readErr.Error(), c.want) {
				t.Errorf("error does not say %q: %v", c.want, readErr)
			}
			if c.is == nil && bad.Err != nil || c.is != nil && !errors.Is(readErr, c.is) {
				t.Errorf("error wraps %v, want %v", bad.Err, c.is)
			}
		})
	}
}

// TestAnyTruncation: a file cut anywhere is refused and changes nothing.
func TestAnyTruncation(t *testing.T) {
	whole := written(t, counting(sample(t)), map[string]string{"a": "b"})
	into := NewParams(sample(t))
	for n := range whole {
		_, err := into.LoadSafetensors(bytes.NewReader(whole[:n]))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if MaxAbs(into.Vector()) != 0 {
			t.Fatalf("cut at %d: the model changed", n)
		}
	}
}

// TestReaderErrors: an error of the reader is passed on, and is not mistaken
// for a bad file.
func TestReaderErrors(t *testing.T) {
	whole := written(t, counting(sample(t)), nil)
	for _, n := range []int{0, 4, 20, len(whole) - 3, len(whole)} {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(errDisk))
		_, _, err := ReadSafetensors(r)
		var bad *FormatError
		if !errors.Is(err, errDisk) || errors.As(err, &bad) {
			t.Errorf("reader fails after %d bytes: %v", n, err)
		}
	}
}

// TestClaimsCostNoMemory: lengths that a file only claims are not allocated.
func TestClaimsCostNoMemory(t *testing.T) {
	const bound = 4 << 20
	huge := maxLen / 4 * 4
	for _, c := range []struct {
		name string
		file []byte
	}{
		{"header", append(binary.LittleEndian.AppendUint64(nil, maxHeader), '{')},
		{"data", file(fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, huge, uint64(ValueSize)*uint64(huge)), 100)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := ReadSafetensors(bytes.NewReader(c.file))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > bound {
			t.Errorf("%s: %d bytes allocated for a file of %d", c.name, got, len(c.file))
		}
	}
}

func TestTooManyTensors(t *testing.T) {
	var b strings.Builder
	for i := range maxRanges + 1 {
		b.WriteString("," + f32(fmt.Sprint(i), "[]", 4*i, 4*i+4))
	}
	_, _, err := ReadSafetensors(bytes.NewReader(file("{"+b.String()[1:]+"}", 4*maxRanges+4)))
	if err == nil || !strings.Contains(err.Error(), "more than 65536 tensors") {
		t.Errorf("error %v", err)
	}
}

// FuzzReadSafetensors: whatever is accepted can be written and read again, and
// is then the same.
func FuzzReadSafetensors(f *testing.F) {
	f.Add(written(f, counting(sample(f)), map[string]string{"a": "b"}))
	for _, c := range badFiles() {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, metadata, err := ReadSafetensors(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, _, err := ReadSafetensors(bytes.NewReader(written(t, p, metadata)))
		if err != nil {
			t.Fatal(err)
		}
		sameModel(t, again, p)
		loaded := NewParams(p.Layout())
		if _, err := loaded.LoadSafetensors(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		sameModel(t, loaded, p)
	})
}
