package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/peer/decoded"
)

// settle sets the times of all files below a folder to long ago.
func settle(t *testing.T, dir string) {
	t.Helper()
	long := time.Unix(1e9, 0)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Chtimes(path, long, long)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told is all that a data set tells: of itself, of what is held out, and of the batches of two passes.
func told(t *testing.T, c Config) (lines []string) {
	t.Helper()
	data, err := Load(t.Context(), c)
	if err != nil {
		return []string{err.Error()}
	}
	batches, err := data.Batches(2, 1, Augment{})
	if err != nil {
		t.Fatal(err)
	}
	defer batches.Close()
	var b Batch
	for range data.Len() {
		if err := batches.Next(&b); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(b.Labels, b.X))
	}
	total, named := data.Skipped(0)
	for _, err := range named {
		lines = append(lines, fmt.Sprint(err, errors.Is(err, ErrPicture), errors.Is(err, ErrLabel)))
	}
	for i := range data.HeldOut.Len() {
		lines = append(lines, fmt.Sprint(data.HeldOut.Label(i), data.HeldOut.Image(i)))
	}
	slices.Sort(lines)
	return append(lines, fmt.Sprint(data.Total, data.Len(), data.Shape(), data.Classes(), data.Measured(), data.Resized(), total))
}

// TestDecodedOnce: with a folder of decoded data a set is the same as without one. A second job reads nothing from the
// files, even for another part.
func TestDecodedOnce(t *testing.T) {
	members := samplesOf(t, 0, 9, 8, 8)
	members[2].data = []byte("GIF89a")
	members[4].data = asPNG(t, noise(2, 8, 9))
	members[6].data = members[6].data[:50]
	members[9].data = []byte("cat")
	damaged := map[string][]byte{"train.tar": archive(t, members...), "test.tar.gz": zipped(t, archive(t, samplesOf(t, 10, 3, 8, 8)...))}
	mixed := map[string][]byte{"train/ant/torn.jpg": []byte("torn"), "train/bee/foreign.gif": nil}
	for k := range 24 {
		set, class := []string{"train", "train", "test"}[k%3], []string{"ant", "bee"}[k%2]
		mixed[fmt.Sprintf("%s/%s/%d.png", set, class, k)] = asPNG(t, noise(uint64(k), 8, 8+k%2))
	}
	sets := map[string]Config{
		"mnist": {Name: "mnist", Dir: writeFamily(t, nil)}, "damaged": {Name: "images", Dir: write(t, damaged)},
		"folders of my own": {Name: "images", Dir: write(t, mixed)},
	}
	for format, files := range cifarIn(t) {
		sets[format] = Config{Name: "cifar10", Dir: write(t, files)}
	}
	for name, c := range sets {
		settle(t, c.Dir)
		want := told(t, c)
		kept := c
		kept.Decoded = &decoded.Folder{Dir: filepath.Join(t.TempDir(), "decoded")}
		if got := told(t, kept); !slices.Equal(got, want) {
			t.Errorf("%s, the first job: %.500q, want %.500q", name, got, want)
		}
		part := c
		part.Part, part.Parts = 1, 2
		wantPart := told(t, part)
		touched := touches(t, c.Dir)
		if got := told(t, kept); !slices.Equal(got, want) {
			t.Errorf("%s, the second: %.500q, want %.500q", name, got, want)
		}
		if part.Decoded = kept.Decoded; name != "damaged" { // which of another part are damaged is seen as well
			if got := told(t, part); !slices.Equal(got, wantPart) {
				t.Errorf("%s, the part: %.500q, want %.500q", name, got, wantPart)
			}
		}
		if files := touched(); len(files) > 0 {
			t.Errorf("%s: later jobs have opened %q", name, files)
		}
	}
}
