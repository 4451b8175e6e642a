package dataset

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-97356399/murmuration/examples/zoo/internal/ztest"
)

// cifarIn are the same 20 training and 10 held-out pictures in each format.
func cifarIn(t testing.TB) map[string]map[string][]byte {
	folders := make(map[string][]byte)
	for k := range 30 {
		set := "train"
		if k >= 20 {
			set = "test"
		}
		folders[fmt.Sprintf("%s/class-%d/%d.png", set, k%10, k)] = asPNG(t, noise(uint64(k), 32, 32))
	}
	return map[string]map[string][]byte{
		"batches":  {"data_batch_1.bin": cifarBatch(0, 8), "data_batch_2.bin": cifarBatch(8, 12), "test_batch.bin": cifarBatch(20, 10)},
		"unpacked": {"cifar-10-batches-bin/data_batch_1.bin": cifarBatch(0, 20), "cifar-10-batches-bin/test_batch.bin": cifarBatch(20, 10), "cifar-10-batches-bin/readme.html": nil},
		"shards": {
			"train-0.tar": archive(t, samplesOf(t, 0, 8, 32, 32)...), "train-1.tar.gz": zipped(t, archive(t, samplesOf(t, 8, 12, 32, 32)...)),
			"test-0.tgz": zipped(t, archive(t, samplesOf(t, 20, 10, 32, 32)...)),
		},
		"folders": folders,
	}
}

// Whatever the format, the pictures are the same, and so are labels and numbers.
func TestFormatsAgree(t *testing.T) {
	want := make(map[string]uint8)
	for k := range 30 {
		want[string(levelsOf(noise(uint64(k), 32, 32)))] = uint8(k % 10)
	}
	for name, files := range cifarIn(t) {
		data, err := Load(t.Context(), Config{Name: "cifar10", Dir: write(t, files), Part: 1, Parts: 2, Norm: []Normalization{{Scale: 1.0 / 255}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if data.Total != 20 || data.Len() != 10 || data.HeldOut.Len() != 10 || data.Shape() != cifarShape || data.Classes() != 10 || data.Train != nil || data.Measured() != nil {
			t.Errorf("%s: %d of %d pictures, %d held out, %v, %d classes", name, data.Len(), data.Total, data.HeldOut.Len(), data.Shape(), data.Classes())
		}
		for i := range data.HeldOut.Len() {
			if label, known := want[string(data.HeldOut.Image(i))]; !known || int(label) != data.HeldOut.Label(i) {
				t.Fatalf("%s: held-out picture %d is of class %d", name, i, data.HeldOut.Label(i))
			}
		}
		batches, err := data.Batches(10, 1, Augment{})
		if err != nil {
			t.Fatal(err)
		}
		defer batches.Close()
		var b Batch
		for range 3 {
			if err := batches.Next(&b); err != nil {
				t.Fatal(err)
			}
			for i, class := range b.Labels {
				levels := make([]uint8, 3072)
				for j, v := range b.X[i*3072 : (i+1)*3072] {
					levels[j] = uint8(math.Round(float64(v)))
				}
				if label, known := want[string(levels)]; !known || label != class {
					t.Fatalf("%s: a picture of class %d is not one of the set's", name, class)
				}
			}
		}
		if n, named := data.Skipped(0); n != 0 {
			t.Errorf("%s: %d skipped: %v", name, n, named)
		}
	}
}

// Damaged pictures are named, with the reason; the others are used.
func TestDamagedPictures(t *testing.T) {
	members := samplesOf(t, 0, 6, 8, 8)
	members[2].data = []byte("GIF89a")         // 000001
	members[4].data = asPNG(t, noise(2, 8, 9)) // 000002 is of another size
	members[6].data = members[6].data[:50]     // 000003
	members[9].data = []byte("cat")            // 000004
	heldOut := samplesOf(t, 10, 3, 8, 8)       // 000010 ...
	heldOut[4].data = asPNG(t, noise(1, 7, 7)) // 000012 is of another size
	dir := write(t, map[string][]byte{"train.tar": archive(t, members...), "test.tar": archive(t, heldOut...)})
	data, err := Load(t.Context(), Config{Name: "images", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	batches, err := data.Batches(4, 1, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	for range 5 {
		if err := batches.Next(new(Batch)); err != nil {
			t.Fatal(err)
		}
	}
	if data.Total != 5 || data.HeldOut.Len() != 3 || data.Resized() != 2 || data.Shape() != (Shape{8, 8, 3}) || data.Classes() != 6 {
		t.Errorf("%d pictures, %d held out, %d resized, %v, %d classes", data.Total, data.HeldOut.Len(), data.Resized(), data.Shape(), data.Classes())
	}
	total, named := data.Skipped(0)
	var keys []string
	for _, err := range named {
		keys = append(keys, err.Key)
		if !strings.HasPrefix(err.Path, dir) || !errors.Is(err, ErrPicture) && !errors.Is(err, ErrLabel) {
			t.Errorf("%v", err)
		}
	}
	slices.Sort(keys)
	if want := []string{"000001", "000003", "000004"}; total != 3 || !slices.Equal(keys, want) {
		t.Errorf("%d skipped: %q, want %q", total, keys, want)
	}
	if text := named[0].Error(); !strings.Contains(text, "train.tar, record 000004: bad label") {
		t.Errorf("the first is %q", text)
	}
}

// A label that the set has no class for is damage, wherever it is read.
func TestLabelsOfNoClass(t *testing.T) {
	members := samplesOf(t, 0, 4, 32, 32)
	members[3].data = []byte("10")
	shard := archive(t, members...)
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: write(t, map[string][]byte{"train.tar": shard, "test.tar": shard})})
	if err != nil {
		t.Fatal(err)
	}
	batches, err := data.Batches(3, 1, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	var b Batch
	if err := batches.Next(&b); err != nil {
		t.Fatal(err)
	}
	slices.Sort(b.Labels)
	total, named := data.Skipped(0)
	if data.Total != 3 || data.HeldOut.Len() != 3 || !slices.Equal(b.Labels, []uint8{0, 2, 3}) || total != 2 || !errors.Is(named[0], ErrLabel) {
		t.Errorf("%d pictures, labels %d, %d skipped: %v", data.Total, b.Labels, total, named)
	}
}

// Without a constant, the normalization is measured over the training pictures. It is
// the same for all parts.
func TestMeasured(t *testing.T) {
	files := map[string][]byte{"train-0.tar": archive(t, samplesOf(t, 0, 30, 6, 5)...), "train-1.tar": archive(t, samplesOf(t, 30, 20, 6, 5)...), "test.tar": archive(t, samplesOf(t, 50, 5, 6, 5)...)}
	dir := write(t, files)
	m := newMoments(3)
	for k := range 50 {
		m.add(levelsOf(noise(uint64(k), 6, 5)))
	}
	for part := range 2 {
		for _, shard := range []Shard{{}, {Files: true}} {
			data, err := Load(t.Context(), Config{Name: "images", Dir: dir, Part: part, Parts: 2, Shard: shard})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(data.Measured(), m.norm()) {
				t.Errorf("part %d, %v: %v, want %v", part, shard, data.Measured(), m.norm())
			}
			if shard.Files && data.Len() != 20 && data.Len() != 30 {
				t.Errorf("part %d by files has %d pictures", part, data.Len())
			}
		}
	}
	data, err := Load(t.Context(), Config{Name: "images", Dir: dir, Norm: []Normalization{{0.5, 0.5}}})
	if err != nil || data.Measured() != nil {
		t.Errorf("measured %v although it is given, %v", data.Measured(), err)
	}
}

// Levels of several folders add up to the normalization of all their pictures, to the last bit. It
// is the same if all folders count three times.
func TestLevelsOfAll(t *testing.T) {
	folder := func(first, n int) string {
		return write(t, map[string][]byte{"train.tar": archive(t, samplesOf(t, first, n, 6, 5)...), "test.tar": archive(t, samplesOf(t, 90, 5, 6, 5)...)})
	}
	sum := func(dirs ...string) []Normalization {
		var sums []float64
		for _, dir := range dirs {
			levels, err := Levels(t.Context(), Config{Name: "images", Dir: dir, Norm: []Normalization{{0.5, 0.5}}})
			if err != nil {
				t.Fatal(err)
			}
			sums = append(sums, make([]float64, len(levels)-len(sums))...)
			for i, n := range levels {
				sums[i] += n
			}
		}
		norm, err := NormOf(sums)
		if err != nil {
			t.Fatal(err)
		}
		return norm
	}
	data, err := Load(t.Context(), Config{Name: "images", Dir: folder(0, 50)})
	if err != nil {
		t.Fatal(err)
	}
	a, b := folder(0, 30), folder(30, 20)
	if got := sum(a, b); !slices.Equal(got, data.Measured()) {
		t.Errorf("%v, want %v", got, data.Measured())
	}
	if got := sum(a, b, b, a, a, b); !slices.Equal(got, data.Measured()) {
		t.Errorf("%v of three each, want %v", got, data.Measured())
	}
	for _, c := range []Config{{}, {Name: "glyphs"}, {Name: "text", Dir: a}} {
		if _, err := Levels(t.Context(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("levels of %q: %v", c.Name, err)
		}
	}
	if levels, err := Levels(t.Context(), Config{Name: "mnist", Dir: writeFamily(t, nil)}); err != nil || !slices.Equal(levels, []float64{3 * Inputs, 0, 0}) {
		t.Errorf("%v, %v", levels, err)
	}
	for _, none := range [][]float64{nil, {1}, {1, 2}, {0, 0, 0}, {math.NaN(), 0, 0}, {1, 1e300, 0}} {
		if _, err := NormOf(none); !errors.Is(err, ErrConfig) {
			t.Errorf("a normalization of %v: %v", none, err)
		}
	}
}

// Each error names the file or the folder, and says what to do.
func TestLoadPhotographsRefuses(t *testing.T) {
	shard, files := archive(t, samplesOf(t, 0, 4, 32, 32)...), cifarIn(t)
	for name, c := range map[string]struct {
		files map[string][]byte
		path  string
		want  error
		says  string
	}{
		"nothing":           {nil, "", ErrMissing, "gossipnode data fetch cifar10"},
		"no test":           {map[string][]byte{"train.tar": shard}, "", ErrMissing, "both sets"},
		"no train":          {map[string][]byte{"test.tar": shard}, "", ErrMissing, "both sets"},
		"two formats":       {map[string][]byte{"train.tar": shard, "test.tar": shard, "data_batch_1.bin": cifarBatch(0, 1), "test_batch.bin": cifarBatch(0, 1)}, "", ErrUnclear, "keep one"},
		"cut off":           {map[string][]byte{"train.tar": shard[:len(shard)-2000], "test.tar": shard}, "train.tar", ErrTruncated, "etch it again"},
		"test cut off":      {map[string][]byte{"train.tar": shard, "test.tar": shard[:len(shard)-2000]}, "test.tar", ErrTruncated, "etch it again"},
		"no samples":        {map[string][]byte{"train.tar": archive(t, text("README", "")), "test.tar": shard}, "train.tar", ErrEmpty, "another data set"},
		"damaged ones only": {map[string][]byte{"train.tar": archive(t, text("a.jpg", "A")), "test.tar": shard}, "train.tar", ErrEmpty, "no label"},
		"no pictures":       {map[string][]byte{"train.tar": shard, "test.tar": archive(t, text("a.jpg", "A"), text("a.cls", "1"))}, "", ErrEmpty, "can be decoded"},
		"many classes":      {map[string][]byte{"train/a/1.png": nil, "train/b/1.png": nil, "train/c/1.png": nil, "train/d/1.png": nil, "train/e/1.png": nil, "train/f/1.png": nil, "train/g/1.png": nil, "train/h/1.png": nil, "train/i/1.png": nil, "train/j/1.png": nil, "train/k/1.png": nil, "test/a/1.png": nil}, "", ErrMismatch, "images"},
	} {
		dir := write(t, c.files)
		_, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir})
		var wrong *DataError
		if !errors.As(err, &wrong) || !errors.Is(err, c.want) || wrong.Path != filepath.Join(dir, c.path) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		config Config
		want   error
	}{
		"no folder":          {Config{Name: "images"}, ErrConfig},
		"channels":           {Config{Name: "cifar10", Dir: write(t, files["batches"]), Norm: make([]Normalization, 2)}, ErrConfig},
		"normalized glyphs":  {Config{Norm: []Normalization{{0, 1}}}, ErrConfig},
		"memory":             {Config{Memory: -1}, ErrConfig},
		"more parts":         {Config{Name: "cifar10", Dir: write(t, files["batches"]), Parts: 3, Shard: Shard{Files: true}}, ErrShard},
		"files of folders":   {Config{Name: "cifar10", Dir: write(t, files["folders"]), Parts: 2, Shard: Shard{Files: true}}, ErrShard},
		"files and skew":     {Config{Name: "cifar10", Dir: write(t, files["batches"]), Parts: 2, Shard: Shard{Files: true, Alpha: 1}}, ErrShard},
		"one file of glyphs": {Config{Parts: 2, Shard: Shard{Files: true}}, ErrShard},
	} {
		if _, err := Load(t.Context(), c.config); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestStreamBatchLargerThanData(t *testing.T) {
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: write(t, map[string][]byte{"data_batch_1.bin": cifarBatch(0, 7), "test_batch.bin": cifarBatch(7, 1)})})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 8} {
		var wrong *BatchError
		if _, err := data.Batches(size, 1, Augment{}); !errors.As(err, &wrong) || wrong.Have != 7 {
			t.Errorf("batch %d of 7: %v", size, err)
		}
	}
}

// The constants of cifar10 are those of the pictures, here of three of its shards.
func TestCIFAROnThisMachine(t *testing.T) {
	source, dir := ztest.DataDir(t, "cifar10"), t.TempDir()
	for _, name := range []string{"train-0003.tar.gz", "train-0008.tar.gz", "test-0001.tar.gz"} {
		if err := os.Symlink(filepath.Join(source, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := Load(t.Context(), Config{Name: "cifar10", Dir: dir, Part: 1, Parts: 3})
	if err != nil {
		t.Fatal(err)
	}
	if data.Total != 10000 || data.Len() != 3333 || data.HeldOut.Len() != 5000 {
		t.Errorf("%d of %d training pictures, %d held out", data.Len(), data.Total, data.HeldOut.Len())
	}
	levels, err := data.stream.index.measure(t.Context(), cifarShape, 3000, new(findings))
	if err != nil {
		t.Fatal(err)
	}
	measured := levels.norm()
	for c, n := range photographs[0].norm {
		if math.Abs(float64(n.Mean-measured[c].Mean)) > 0.01 || math.Abs(float64(n.Scale-measured[c].Scale)) > 0.01 {
			t.Errorf("channel %d: %v, measured %v", c, n, measured[c])
		}
	}
	if n, named := data.Skipped(0); n != 0 {
		t.Errorf("%d skipped: %v", n, named)
	}
}
