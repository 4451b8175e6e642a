package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeTexts makes a folder of files by their names.
func writeTexts(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// numbered is a folder of files, each of 100 bytes of its own.
func numbered(t *testing.T, n int) string {
	files := map[string]string{".hidden/a.txt": "no", "picture.png": "no", "zeros.txt": "a\x00b", "empty.txt": ""}
	for i := range n {
		files[fmt.Sprintf("folder%02d/file.txt", i)] = strings.Repeat(string(rune('A'+i)), 100)
	}
	return writeTexts(t, files)
}

func TestATextShowsWhatFollows(t *testing.T) {
	set, err := NewText([]byte("abcdefgh"), 3)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	set.Fill(&b, 0, set.Len())
	if set.Len() != 2 || b.Len() != 2 || string(b.Labels) != "bcdefg" || !slices.Equal(b.X, []float32{'a', 'b', 'c', 'd', 'e', 'f'}) {
		t.Errorf("%d windows: %v and %q", b.Len(), b.X, b.Labels)
	}
	if set.Fingerprint() == must(NewText([]byte("abXdefgh"), 3)).Fingerprint() {
		t.Error("another text has the same fingerprint")
	}
	for _, wrong := range []func() (*Set, error){
		func() (*Set, error) { return NewText([]byte("abc"), 3) },
		func() (*Set, error) { return NewText([]byte("abcd"), 0) },
	} {
		if _, err := wrong(); err == nil {
			t.Error("no error")
		}
	}
}

func must(s *Set, err error) *Set {
	if err != nil {
		panic(err)
	}
	return s
}

// TestTextsAreDealtToPeers: the first of every twenty files is held out. The others are divided
// among the peers, as whole files if Shard.Files is set; each byte is in one part.
func TestTextsAreDealtToPeers(t *testing.T) {
	dir := numbered(t, 25)
	for _, shard := range []Shard{{}, {Files: true}} {
		all, err := LoadAll(t.Context(), Config{Name: Text, Dir: dir, Parts: 3, Shard: shard, Window: 7, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		count := map[byte]int{}
		for i, d := range all {
			part := d.Train.text.bytes
			kinds := map[byte]int{}
			for _, b := range part {
				kinds[b]++
				count[b]++
			}
			if len(part) < 700 || len(part) > 833 || len(kinds) > 9 {
				t.Errorf("%v: part %d has %d bytes of %d files", shard, i, len(part), len(kinds))
			}
			for b, n := range kinds {
				if shard.Files && n != 100 {
					t.Errorf("part %d has %d bytes of file %c", i, n, b)
				}
			}
			alone, err := Load(t.Context(), Config{Name: Text, Dir: dir, Parts: 3, Part: i, Shard: shard, Window: 7, Seed: 5})
			if err != nil || !bytes.Equal(alone.Train.text.bytes, part) || alone.Total != d.Total {
				t.Errorf("part %d alone: %v, or other bytes", i, err)
			}
		}
		if count['A'] != 0 || count['A'+20] != 0 || len(count) != 23 {
			t.Errorf("%v: bytes %v to train on", shard, count)
		}
		held := all[0].HeldOut.text.bytes
		if string(held[:100]) != strings.Repeat("A", 100) || string(held[100:]) != strings.Repeat("U", 100) {
			t.Errorf("held out: %q", held)
		}
	}
}

func TestFewTextsHoldOutTheirEnds(t *testing.T) {
	d, err := Load(t.Context(), Config{Name: Text, Dir: writeTexts(t, map[string]string{"book.txt": strings.Repeat("a", 950) + strings.Repeat("z", 50)}), Window: 10})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(d.Train.text.bytes), "z") || string(d.HeldOut.text.bytes) != strings.Repeat("z", 50) {
		t.Error("not the last twentieth is held out")
	}
}

func TestWindowsAreDrawnBySeed(t *testing.T) {
	d, err := Load(t.Context(), Config{Name: Text, Dir: numbered(t, 25), Window: 7})
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed uint64) []uint8 {
		batches, err := d.Batches(5, seed, Augment{})
		if err != nil {
			t.Fatal(err)
		}
		defer batches.Close()
		var b Batch
		var labels []uint8
		for range 4 {
			if err := batches.Next(&b); err != nil {
				t.Fatal(err)
			}
			labels = append(labels, b.Labels...)
		}
		if b.Len() != 5 || len(b.X) != 35 {
			t.Errorf("%d windows of %d bytes", b.Len(), len(b.X))
		}
		return labels
	}
	if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
		t.Error("a seed does not tell the windows")
	}
	var tooMany *BatchError
	if _, err := d.Batches(1<<20, 1, Augment{}); !errors.As(err, &tooMany) {
		t.Errorf("%v, want a BatchError", err)
	}
}

func TestGoSourceIsOnThisMachine(t *testing.T) {
	dir := writeTexts(t, map[string]string{"a/a.go": strings.Repeat("package a\n", 50), "a/testdata/b.go": "no", "readme.md": "no"})
	d, err := Load(t.Context(), Config{Name: GoSource, Dir: dir, Window: 7})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(d.Train.text.bytes), "no") || len(d.Train.text.bytes) != 475 {
		t.Errorf("%q", d.Train.text.bytes)
	}
	if at, err := goSources(""); err != nil {
		t.Errorf("the sources of the Go that runs this test: %v", err)
	} else if _, err := os.Stat(filepath.Join(at, "fmt")); err != nil {
		t.Error(err)
	}
}

func TestTextsThatCannotBeUsed(t *testing.T) {
	dir := numbered(t, 25)
	for want, c := range map[string]Config{
		"no such file":            {Name: Text, Dir: filepath.Join(dir, "none")},
		"0 bytes of text":         {Name: Text, Dir: t.TempDir()},
		"part 0 of 900":           {Name: Text, Dir: dir, Parts: 900},
		"no labels":               {Name: Text, Dir: dir, Parts: 2, Shard: Shard{Alpha: 1}},
		"windows of -1":           {Name: Text, Dir: dir, Window: -1},
		"windows of 5":            {Name: "mnist", Dir: dir, Window: 5},
		"normalization for a tex": {Name: Text, Dir: dir, Norm: []Normalization{{0, 1}}},
	} {
		if _, err := Load(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
