package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-97356399/murmuration/tensor"
)

// travellers are sets, one of each kind.
func travellers(t *testing.T) map[string]*Set {
	t.Helper()
	pictures, err := NewSet([]uint8{1, 2, 3, 4, 5, 6, 7, 8}, []uint8{0, 2}, Shape{Height: 2, Width: 2, Channels: 1}, 3, Normalization{Mean: 0.5, Scale: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := NewRows(tensor.Vector{1, -2, 0.5, 3}, []uint8{1, 0}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	text, err := NewText([]byte("abcdefghi"), 4)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Set{"pixels 2x2x1/3": pictures, "numbers 1x2x1/2": numbers, "text 1x4x1/256": text}
}

// TestExamplesTravel: a model gets the same inputs from examples that were sent as from the set that they come from.
func TestExamplesTravel(t *testing.T) {
	for format, set := range travellers(t) {
		if set.Format() != format {
			t.Errorf("format %q, want %q", set.Format(), format)
		}
		r, err := NewReader(format, set.Norm(), Augment{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		one, err := Stored{set}.Append(nil, []int32{1})
		both, err2 := Stored{set}.Append(one, []int32{0})
		if err = errors.Join(err, err2); err != nil || r.Check(2, both) != nil {
			t.Fatal(format, err, r.Check(2, both))
		}
		var want, got, again Batch
		set.Subset([]int32{1, 0}).Fill(&want, 0, 2)
		r.Fill(&got, both)
		read, err := r.Set(both)
		if err != nil {
			t.Fatal(err)
		}
		read.Fill(&again, 0, 2)
		if !slices.Equal(got.X, want.X) || !slices.Equal(got.Labels, want.Labels) || got.Len() != 2 || !slices.Equal(again.X, want.X) || read.Fingerprint() != set.Subset([]int32{1, 0}).Fingerprint() {
			t.Errorf("%s: %v, want %v", format, got, want)
		}
		if _, err := (Stored{set}).Append(nil, []int32{2}); err == nil {
			t.Errorf("%s: an example beyond the last", format)
		}
	}
}

// TestWhatNoExampleIs: wrong sizes, labels of no class, NaN, infinite numbers and invalid formats are refused.
func TestWhatNoExampleIs(t *testing.T) {
	bad := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32([]byte{1}, math.Float32bits(float32(math.NaN()))), 0)
	infinite := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32([]byte{1}, 0), math.Float32bits(float32(math.Inf(-1))))
	for _, c := range []struct {
		format string
		rows   int
		data   []byte
	}{
		{"pixels 2x2x1/3", 1, []byte{0, 1, 2, 3}}, {"pixels 2x2x1/3", 2, []byte{0, 1, 2, 3, 4}}, {"pixels 2x2x1/3", 1, []byte{3, 1, 2, 3, 4}},
		{"numbers 1x2x1/2", 1, bad}, {"numbers 1x2x1/2", 1, infinite}, {"text 1x4x1/256", 1, []byte("abcd")},
	} {
		r, err := NewReader(c.format, []Normalization{{Scale: 1}}, Augment{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Set(c.data); c.rows == 1 && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: % x is a set: %v", c.format, c.data, err)
		}
		if err := r.Check(c.rows, c.data); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: % x is taken: %v", c.format, c.data, err)
		}
	}
	for _, format := range []string{"", "pixels", "pixels 0x2x1/3", "pixels 999999999x999999999x1/3", "pixels 2x2x1/300", "pixels 2x2x9/3", "other 2x2x1/3", "text 1x64x1/2", "text 2x32x1/256"} {
		if _, err := NewReader(format, []Normalization{{Scale: 1}}, Augment{}, 1); err == nil {
			t.Errorf("%q is a format", format)
		}
	}
}

// TestPicturesInFilesTravel: pictures that are streamed are given alike from memory and from their files; archives, of which no
// part can be read alone, only from memory.
func TestPicturesInFilesTravel(t *testing.T) {
	files := map[string][]byte{}
	for i := range 6 {
		for _, part := range []string{"train", "test"} {
			files[fmt.Sprintf("%s/%s/%d.png", part, []string{"ant", "bee"}[i%2], i)] = asPNG(t, noise(uint64(i), 4, 5))
		}
	}
	dir := write(t, files)
	var all [2][]byte
	var given Examples
	for i, memory := range []int64{1 << 20, 1} {
		d, err := Load(t.Context(), Config{Name: Images, Dir: dir, Seed: 1, Part: 1, Parts: 2, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		given, err = d.Given(t.Context())
		if err != nil || given.Rows() != 3 {
			t.Fatal(given, err)
		}
		if _, read := given.(folderExamples); read != (memory == 1) {
			t.Errorf("of %d bytes, %T", memory, given)
		}
		if all[i], err = given.Append(nil, []int32{2, 0, 1}); err != nil || len(all[i]) != 3*(1+4*5*3) {
			t.Errorf("%d bytes, %v", len(all[i]), err)
		}
	}
	if !slices.Equal(all[0], all[1]) {
		t.Error("pictures from files are not those in memory")
	}
	if err := os.RemoveAll(filepath.Join(dir, "train")); err != nil {
		t.Fatal(err)
	}
	if _, err := given.Append([]byte{7}, []int32{0}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a picture that is gone: %v", err)
	}
	d, err := Load(t.Context(), Config{Name: "cifar10", Dir: write(t, map[string][]byte{"data_batch_1.bin": cifarBatch(0, 5), "test_batch.bin": cifarBatch(5, 2)}), Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Given(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a batch beyond memory: %v", err)
	}
}
