package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folders are n pictures of each of three classes below root; each picture's file
// holds its own name.
func folders(root string, n int) map[string][]byte {
	files := make(map[string][]byte)
	for _, class := range []string{"ant", "bee", "cat"} {
		for k := range n {
			name := fmt.Sprintf("%s/%s/%03d.png", root, class, k)
			files[name] = []byte(name)
		}
	}
	return files
}

func TestClassFolders(t *testing.T) {
	files := folders("train", 300)
	for _, other := range []string{"train/.git/x.png", "train/ant/.hidden.png", "train/ant/notes.txt", "train/readme.png"} {
		files[other] = nil
	}
	dir := write(t, files)
	if err := os.Mkdir(filepath.Join(dir, "train", "aphid"), 0o700); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "train")
	classes, err := classesOf(root)
	if err != nil || !slices.Equal(classes, []string{"ant", "aphid", "bee", "cat"}) {
		t.Fatalf("classes %q, %v", classes, err)
	}
	f, err := newClassFolders(root, classes)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for v := range f.files() {
		reader, err := f.open(v, false)
		if err != nil {
			t.Fatal(err)
		}
		var count [4]int
		for {
			var rec record
			if err := reader.next(&rec); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(rec.key, classes[rec.label]+string(filepath.Separator)) || !bytes.HasSuffix(rec.packed, []byte(filepath.Base(rec.key))) {
				t.Fatalf("%s of class %d holds %s", rec.key, rec.label, rec.packed)
			}
			seen[rec.key]++
			count[rec.label]++
		}
		for c, n := range count {
			if (n > 0) != (c != 1) {
				t.Errorf("volume %d has classes %v: they are to be mixed", v, count)
			}
		}
	}
	if f.files() != 2 || len(seen) != 900 {
		t.Errorf("%d volumes, %d pictures", f.files(), len(seen))
	}
}

func TestClassFoldersRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(files map[string][]byte)
		want error
		path string
	}{
		"no classes":      {func(f map[string][]byte) { clear(f); f["train/a.png"] = nil; f["test/ant/a.png"] = nil }, ErrEmpty, "train"},
		"no pictures":     {func(f map[string][]byte) { clear(f); f["train/ant/a.txt"] = nil; f["test/ant/a.png"] = nil }, ErrEmpty, "train"},
		"a class of test": {func(f map[string][]byte) { f["test/dog/a.png"] = nil }, ErrMismatch, "test/dog"},
		"no test":         {func(f map[string][]byte) { delete(f, "test/ant/000.png") }, ErrMissing, ""},
		"no train":        {func(f map[string][]byte) { clear(f); f["test/ant/a.png"] = nil }, ErrMissing, ""},
	} {
		files := folders("train", 1)
		files["test/ant/000.png"] = nil
		c.edit(files)
		dir := write(t, files)
		_, err := Load(t.Context(), Config{Name: "images", Dir: dir})
		var wrong *DataError
		if !errors.As(err, &wrong) || !errors.Is(err, c.want) || wrong.Path != filepath.Join(dir, c.path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that is too large, or that may not be read, is still a record, with a fault:
// a pass over labels, which opens no files, counts it, too.
func TestClassFolderFaults(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1.png": make([]byte, MaxRecordBytes+1), "a/2.png": []byte("x")})
	if err := os.Chmod(filepath.Join(dir, "a/2.png"), 0); err != nil {
		t.Fatal(err)
	}
	f, err := newClassFolders(dir, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := f.open(0, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var rec record
		if err := reader.next(&rec); err != nil {
			t.Fatal(err)
		}
		readable := strings.HasSuffix(rec.key, "2.png") && os.Geteuid() == 0 // root reads all
		if (rec.fault == nil) != readable || rec.fault != nil && !errors.Is(rec.fault, ErrPicture) {
			t.Errorf("%s: %v", rec.key, rec.fault)
		}
	}
}
