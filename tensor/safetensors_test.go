package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// written returns a model's file.
func written(t testing.TB, p *Params, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteSafetensors(&b, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// counting returns a model of the layout with the values 1, 2, 3, ...
func counting(l *Layout) *Params {
	p := NewParams(l)
	for i := range p.Vector() {
		p.Vector()[i] = float32(i + 1)
	}
	return p
}

func sameModel(t testing.TB, got *Params, want *Params) {
	t.Helper()
	g, w := got.Layout(), want.Layout()
	if g.Count() != w.Count() {
		t.Fatalf("%d tensors, want %d", g.Count(), w.Count())
	}
	for i := range w.Count() {
		a, b := g.At(i), w.At(i)
		if a.Name != b.Name || !slices.Equal(a.Shape, b.Shape) || a.Offset != b.Offset {
			t.Fatalf("tensor %d is %+v, want %+v", i, a, b)
		}
	}
	if !bytes.Equal(AppendBytes(nil, got.Vector()), AppendBytes(nil, want.Vector())) {
		t.Fatalf("values\n%v, want\n%v", got.Vector(), want.Vector())
	}
}

func TestSafetensorsGolden(t *testing.T) {
	p, metadata := counting(sample(t)), map[string]string{"step": "12", "note": "two\nlines <&> ü"}
	p.Vector()[3] = float32(math.NaN())
	got := written(t, p, metadata)
	path := filepath.Join("testdata", "model.safetensors")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes written have changed:\n%q, want\n%q", got, want)
	}
	if start := 8 + binary.LittleEndian.Uint64(got); start%8 != 0 {
		t.Errorf("data starts at %d, which is not aligned", start)
	}
	read, gotMetadata, err := ReadSafetensors(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	sameModel(t, read, p)
	if !maps.Equal(gotMetadata, metadata) {
		t.Errorf("metadata %q, want %q", gotMetadata, metadata)
	}
	header := bytes.NewReader(want[:8+binary.LittleEndian.Uint64(want)])
	if alone, err := ReadSafetensorsMetadata(header); err != nil || !maps.Equal(alone, metadata) {
		t.Errorf("the metadata of a file without its values: %q, %v", alone, err)
	}
	if alone, err := ReadSafetensorsMetadata(bytes.NewReader(want[:20])); err == nil {
		t.Errorf("half a header has metadata: %q", alone)
	}
}

// TestReadsPythonsFile reads what the format's own implementation wrote
// (testdata/python.py), half-precision types and escapes included.
func TestReadsPythonsFile(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "python.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	p, metadata, err := ReadSafetensors(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if metadata["maker"] != "python" || metadata["text"] != `quotes " and ümläute` || len(metadata) != 2 {
		t.Errorf("metadata %q", metadata)
	}
	for _, c := range []struct {
		name  string
		shape []int
		want  Vector
	}{
		{"half", []int{5}, Vector{0.5, -2, 65504, 0x1p-24, float32(math.Inf(1))}},
		{"layer.weight", []int{2, 3}, Vector{-1, -0.75, -0.5, -0.25, 0, 0.25}},
		{"bf16", []int{2, 2}, Vector{1, -2, 0x1.fep127, 0x1p-133}},
		{"scalar", nil, Vector{3.25}},
	} {
		r, ok := p.Layout().Lookup(c.name)
		if !ok || !slices.Equal(r.Shape, c.shape) {
			t.Errorf("%s: range %+v, %v", c.name, r, ok)
		}
		if got, _ := p.Tensor(c.name); !slices.Equal(got, c.want) {
			t.Errorf("%s is %v, want %v", c.name, got, c.want)
		}
	}
	if p.Layout().Count() != 4 {
		t.Errorf("%d tensors, want 4", p.Layout().Count())
	}
}

func TestSafetensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, maxNameLen), 0, 5, rapid.ID).Draw(t, "names")
		var specs []Spec
		for _, name := range names {
			shape := rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "shape")
			specs = append(specs, Spec{Name: name, Shape: shape})
		}
		l, err := NewLayout(specs...)
		if err != nil {
			t.Fatal(err)
		}
		p := NewParams(l)
		for i := range p.Vector() {
			p.Vector()[i] = math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		}
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata")
		var file bytes.Buffer
		if err := p.WriteSafetensors(&file, metadata); err != nil {
			t.Fatal(err)
		}
		got, gotMetadata, err := ReadSafetensors(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(AppendBytes(nil, got.Vector()), AppendBytes(nil, p.Vector())) || got.Layout().Hash() != l.Hash() {
			t.Fatalf("%v comes back as %v", p, got)
		}
		if len(metadata) == 0 && gotMetadata != nil || !maps.Equal(metadata, gotMetadata) {
			t.Fatalf("metadata %q comes back as %q", metadata, gotMetadata)
		}
	})
}

// TestSafetensorsLarge crosses the boundaries of pieces, in a file that arrives
// in odd bits.
func TestSafetensorsLarge(t *testing.T) {
	l := mustLayout(t,
		Spec{Name: "a", Shape: []int{chunkValues - 1}},
		Spec{Name: "b", Shape: []int{3, chunkValues}},
		Spec{Name: "c", Shape: []int{2}},
	)
	p := counting(l)
	file := written(t, p, nil)
	got, _, err := ReadSafetensors(iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(file))))
	if err != nil {
		t.Fatal(err)
	}
	sameModel(t, got, p)
}

// TestHeaderOutOfOrder: the header's order says nothing; the data's is the
// layout's.
func TestHeaderOutOfOrder(t *testing.T) {
	header := "{" + f32("last", "[1]", 12, 16) + "," + f32("first", "[2]", 0, 8) + "," + f32("middle", "[]", 8, 12) + "}"
	data := AppendBytes(nil, Vector{1, 2, 3, 4})
	got, _, err := ReadSafetensors(bytes.NewReader(append(file(header, 0), data...)))
	if err != nil {
		t.Fatal(err)
	}
	want := counting(mustLayout(t, Spec{Name: "first", Shape: []int{2}}, Spec{Name: "middle"}, Spec{Name: "last", Shape: []int{1}}))
	sameModel(t, got, want)
}

func TestLoadSafetensors(t *testing.T) {
	target := sample(t)
	var specs []Spec
	for _, r := range target.Ranges() {
		specs = append(specs, Spec{Name: r.Name, Shape: r.Shape})
	}
	slices.Reverse(specs)
	source := counting(mustLayout(t, specs...))

	into := NewParams(target)
	metadata, err := into.LoadSafetensors(bytes.NewReader(written(t, source, map[string]string{"a": "b"})))
	if err != nil || metadata["a"] != "b" {
		t.Fatalf("metadata %q, %v", metadata, err)
	}
	for _, s := range specs {
		got, _ := into.Tensor(s.Name)
		want, _ := source.Tensor(s.Name)
		if !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", s.Name, got, want)
		}
	}
	if r, _ := into.Layout().Lookup("words"); r.Sharing != Frozen {
		t.Error("loading changed the layout")
	}
}

func TestLoadSafetensorsMismatch(t *testing.T) {
	into := counting(mustLayout(t, Spec{Name: "a", Shape: []int{2, 3}}, Spec{Name: "b"}))
	before := clone(into.Vector())
	many := make([]Spec, 50)
	for i := range many {
		many[i].Name = fmt.Sprint("extra", i)
	}
	for _, c := range []struct {
		name  string
		specs []Spec
		want  []string
	}{
		{"shape", []Spec{{Name: "a", Shape: []int{3, 2}}, {Name: "b"}}, []string{`"a"`, "[3 2]", "[2 3]"}},
		{"missing", []Spec{{Name: "a", Shape: []int{2, 3}}}, []string{`"b" is not in the file`}},
		{"extra", []Spec{{Name: "a", Shape: []int{2, 3}}, {Name: "b"}, {Name: "c"}}, []string{`"c" is not in the layout`}},
		{"all", many, []string{"extra0", "and 42 more"}},
	} {
		_, err := into.LoadSafetensors(bytes.NewReader(written(t, NewParams(mustLayout(t, c.specs...)), nil)))
		if !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: error %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error does not say %q:\n%v", c.name, want, err)
			}
		}
	}
	if !slices.Equal(into.Vector(), before) {
		t.Error("a file that does not fit changed the model")
	}
}

type failingWriter struct{ left int }

var errDisk = errors.New("disk full")

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestWriteSafetensorsFails(t *testing.T) {
	p := counting(sample(t))
	for _, room := range []int{0, len(written(t, p, nil)) - 1} {
		if err := p.WriteSafetensors(&failingWriter{room}, nil); !errors.Is(err, errDisk) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	var b bytes.Buffer
	if err := p.WriteSafetensors(&b, map[string]string{"a": "\xff"}); err == nil || b.Len() != 0 {
		t.Errorf("metadata that is not UTF-8: %v, %d bytes written", err, b.Len())
	}
	if err := p.WriteSafetensors(io.Discard, map[string]string{"a": strings.Repeat("x", maxHeader)}); err == nil {
		t.Error("a header that no reader takes is written")
	}
}

func BenchmarkWriteSafetensors(b *testing.B) {
	p := NewParams(mustLayout(b, Spec{Name: "a", Shape: []int{1 << 20}}))
	b.SetBytes(int64(ValueSize * len(p.Vector())))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.WriteSafetensors(io.Discard, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadSafetensors(b *testing.B) {
	file := written(b, NewParams(mustLayout(b, Spec{Name: "a", Shape: []int{1 << 20}})), nil)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ReadSafetensors(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSafetensorsReadsWholeNumbers: torch counts a BatchNorm's batches in 64-bit integers, which may be many.
func TestSafetensorsReadsWholeNumbers(t *testing.T) {
	const many = chunkValues + 3
	header := fmt.Sprintf(`{"count":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"many":{"dtype":"I64","shape":[%d],"data_offsets":[8,%d]},"w":{"dtype":"F32","shape":[1],"data_offsets":[%[2]d,%d]}}`, many, 8+8*many, 12+8*many)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	file = binary.LittleEndian.AppendUint64(file, 16_777_217) // between two float32
	for i := range many {
		file = binary.LittleEndian.AppendUint64(file, uint64(-i))
	}
	file = binary.LittleEndian.AppendUint32(file, math.Float32bits(0.5))
	p, _, err := ReadSafetensors(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	v := p.Vector()
	if len(v) != 1+many+1 || v[0] != 16_777_216 || v[many+1] != 0.5 {
		t.Errorf("%d values, %v to %v", len(v), v[0], v[len(v)-1])
	}
	for i := range many {
		if v[1+i] != float32(-i) {
			t.Fatalf("value %d is %v", i, v[1+i])
		}
	}
}
