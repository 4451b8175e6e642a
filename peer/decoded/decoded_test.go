package decoded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

var long = time.Now().Add(-time.Hour)

// written is a file of a data set, which changed long ago.
func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	write(t, path, content, long)
	return path
}

func write(t *testing.T, path, content string, at time.Time) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, at, at)); err != nil {
		t.Fatal(err)
	}
}

// replace puts another file of the same size and time in the place of one.
func replace(t *testing.T, path, content string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Size() != int64(len(content)) {
		t.Fatal(info.Size(), err)
	}
	if runtime.GOOS == "windows" { // inodes are not looked at there
		write(t, path, content, info.ModTime().Add(time.Second))
		return
	}
	write(t, path+"-new", content, info.ModTime())
	if err := os.Rename(path+"-new", path); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T) *Folder { return &Folder{Dir: filepath.Join(t.TempDir(), "made", "here")} }

// double decodes a file, and counts how often.
func double(path string, times *int) func(io.Writer) error {
	return func(w io.Writer) error {
		*times++
		b, err := os.ReadFile(path)
		if err == nil {
			_, err = w.Write(bytes.Repeat(b, 2))
		}
		return err
	}
}

// content is what is opened of a recipe, "" if that fails.
func content(t *testing.T, f *Folder, r Recipe, decode func(io.Writer) error) (string, error) {
	t.Helper()
	file, err := f.Open(t.Context(), r, decode)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), nil
}

// keptIn are the names of what a folder keeps.
func keptIn(t *testing.T, f *Folder) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v", e.Name(), info.Mode(), err)
		}
		if !strings.HasPrefix(e.Name(), locks) {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestDecodedOnce: what was decoded is decoded again only when the files or the settings are others.
func TestDecodedOnce(t *testing.T) {
	f, path := folder(t), written(t, "one")
	times := 0
	for i, c := range []struct {
		change   func()
		settings string
		want     string
		times    int
	}{
		{func() {}, "a", "oneone", 1},
		{func() {}, "a", "oneone", 1},
		{func() {}, "b", "oneone", 2},
		{func() { write(t, path, "three", long) }, "a", "threethree", 3},
		{func() { write(t, path, "eight", long.Add(time.Nanosecond*1e6)) }, "a", "eighteight", 4},
		{func() {}, "a", "eighteight", 4},
		{func() { replace(t, path, "seven") }, "a", "sevenseven", 5},
	} {
		c.change()
		if got, err := content(t, f, Recipe{[]string{path}, c.settings}, double(path, &times)); got != c.want || err != nil || times != c.times {
			t.Errorf("%d: %q, decoded %d times, error %v", i, got, times, err)
		}
	}
	if info, err := os.Stat(f.Dir); err != nil || info.Mode().Perm() != 0o700 || len(keptIn(t, f)) != 5 {
		t.Errorf("%v, %v", info.Mode(), keptIn(t, f))
	}
}

// TestDamaged: whatever has become of a file, the next job decodes anew.
func TestDamaged(t *testing.T) {
	f, path := folder(t), written(t, strings.Repeat("many bytes ", 1000))
	times, r := 0, Recipe{Files: []string{path}}
	want, err := content(t, f, r, double(path, &times))
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(f.Dir, keptIn(t, f)[0])
	whole, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 4
		return b
	}
	for name, spoilt := range map[string][]byte{
		"empty": {}, "a byte": whole[:1], "half": whole[:len(whole)/2], "all but one": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0),
		"first": flipped(0), "middle": flipped(len(whole) / 2), "checksum": flipped(len(whole) - 5), "length": flipped(len(whole) - 1),
	} {
		times = 0
		if err := os.WriteFile(kept, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		f := &Folder{Dir: f.Dir}
		if got, err := content(t, f, r, double(path, &times)); got != want || err != nil || times != 1 {
			t.Errorf("%s: decoded %d times, equal %v, error %v", name, times, got == want, err)
		}
	}
}

// TestCheckedOnce: a job checks a file once, and anew if it is another file. It does not check what it has written itself.
func TestCheckedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		open   int // times that it is opened before
		change func(path string, content []byte) error
		times  int // that it is decoded then
	}{
		"written": {0, func(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }, 0},
		"checked": {1, func(path string, b []byte) error { return os.WriteFile(path, b, 0o600) }, 0},
		"cut":     {1, func(path string, b []byte) error { return os.WriteFile(path, b[1:], 0o600) }, 1},
		"replaced": {1, func(path string, b []byte) error {
			return errors.Join(os.WriteFile(path+"x", b, 0o600), os.Rename(path+"x", path))
		}, 1},
	} {
		f, path, times := folder(t), written(t, strings.Repeat("many bytes ", 1000)), 0
		r := Recipe{Files: []string{path}}
		if _, err := content(t, f, r, double(path, &times)); err != nil {
			t.Fatal(err)
		}
		if c.open > 0 {
			if f = (&Folder{Dir: f.Dir}); times != 1 {
				t.Fatalf("%s: decoded %d times", name, times)
			}
			if _, err := content(t, f, r, double(path, &times)); err != nil {
				t.Fatal(err)
			}
		}
		kept := filepath.Join(f.Dir, keptIn(t, f)[0])
		whole, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		whole[len(whole)/2] ^= 4
		times = 0
		if err := c.change(kept, whole); err != nil {
			t.Fatal(err)
		}
		file, err := f.Open(t.Context(), r, double(path, &times))
		if err != nil || times != c.times {
			t.Fatalf("%s: decoded %d times, error %v", name, times, err)
		}
		if _, err := io.ReadAll(file); (err == nil) != (times > 0) { // the checksum is at the end
			t.Errorf("%s: decoded %d times, read with %v", name, times, err)
		}
		file.Close()
	}
}

// TestNotKept: what cannot be kept safely is not, and leaves nothing behind.
func TestNotKept(t *testing.T) {
	path := written(t, "some")
	fault := errors.New("a fault of the data")
	for name, c := range map[string]struct {
		folder func(f *Folder)
		recipe Recipe
		decode func(io.Writer) error
		want   error
	}{
		"a fault":          {decode: func(io.Writer) error { return fault }, want: fault},
		"no file":          {recipe: Recipe{Files: []string{path + "no"}}, want: os.ErrNotExist},
		"a folder":         {recipe: Recipe{Files: []string{filepath.Dir(path)}}, want: errFresh},
		"changed just now": {folder: func(*Folder) { write(t, path, "else", time.Now()) }, want: errFresh},
		"changed meanwhile": {decode: func(w io.Writer) error {
			write(t, path, "else", long.Add(time.Second))
			_, err := io.WriteString(w, "some")
			return err
		}, want: errChanged},
		"a folder of all": {folder: func(f *Folder) { os.MkdirAll(f.Dir, 0o700); os.Chmod(f.Dir, 0o750) }, want: errOpen},
		"another's": {folder: func(f *Folder) {
			os.MkdirAll(f.Dir, 0o700)
			if os.Geteuid() != 0 || os.Chown(f.Dir, 12345, 12345) != nil {
				os.Chmod(f.Dir, 0o707) // only root can give a folder away
			}
		}, want: errOpen},
	} {
		write(t, path, "some", long)
		f := folder(t)
		if c.folder != nil {
			c.folder(f)
		}
		if c.recipe.Files == nil {
			c.recipe.Files = []string{path}
		}
		times := 0
		if c.decode == nil {
			c.decode = double(path, &times)
		}
		if got, err := content(t, f, c.recipe, c.decode); !errors.Is(err, c.want) || times > 0 {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
		if _, err := os.Stat(f.Dir); err == nil && len(keptIn(t, f)) > 0 {
			t.Errorf("%s: %v is left", name, keptIn(t, f))
		}
	}
}

// TestBounds: what is larger than the folder is tried once, and what was not used for longest makes room.
func TestBounds(t *testing.T) {
	f, times := folder(t), 0
	f.Limit = 1000
	large := written(t, strings.Repeat("x", 600))
	for range 2 {
		if got, err := content(t, f, Recipe{Files: []string{large}}, double(large, &times)); !errors.Is(err, errTooLarge) || times != 1 {
			t.Errorf("%q, decoded %d times, error %v", got, times, err)
		}
	}
	paths := []string{written(t, strings.Repeat("a", 200)), written(t, strings.Repeat("b", 200)), written(t, strings.Repeat("c", 200))}
	for round := range 16 { // names are digests: in the order of these, or in none, not all rounds would be right
		for i, c := range []struct{ file, times int }{{0, 1}, {1, 1}, {0, 0}, {2, 1}, {0, 0}, {1, 1}, {2, 1}} { // two fit
			times = 0
			r := Recipe{[]string{paths[c.file]}, strconv.Itoa(round)}
			if _, err := content(t, f, r, double(paths[c.file], &times)); err != nil || times != c.times {
				t.Errorf("round %d, %d: decoded %d times, error %v", round, i, times, err)
			}
		}
	}
}

// TestWaiting: a job that is called off while it waits for another ends.
func TestWaiting(t *testing.T) {
	f, path, times := folder(t), written(t, "one"), 0
	r := Recipe{Files: []string{path}}
	got, err := content(t, f, r, func(w io.Writer) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.Open(ctx, r, double(path, &times)); !errors.Is(err, context.Canceled) || times > 0 {
			t.Errorf("a second job decoded %d times, error %v", times, err)
		}
		_, err := io.WriteString(w, "first")
		return err
	})
	if got != "first" || err != nil {
		t.Errorf("%q, error %v", got, err)
	}
}

// TestBytes: they are those that decode made, and its faults are decode's.
func TestBytes(t *testing.T) {
	path, times := written(t, "one"), 0
	fault := errors.New("a fault of the data")
	decode := func() ([]byte, error) {
		times++
		return []byte("xyz"), nil
	}
	f := folder(t)
	for _, c := range []struct {
		folder *Folder
		recipe Recipe
		times  int
	}{{nil, Recipe{Files: []string{path}}, 2}, {f, Recipe{Files: []string{path}}, 1}, {f, Recipe{Files: []string{path + "no"}}, 2}} {
		times = 0
		for range 2 {
			if b, err := Bytes(t.Context(), c.folder, c.recipe, decode); string(b) != "xyz" || err != nil {
				t.Errorf("%q, error %v", b, err)
			}
		}
		if times != c.times {
			t.Errorf("decoded %d times, not %d", times, c.times)
		}
	}
	times = 0
	if _, err := Bytes(t.Context(), f, Recipe{Files: []string{path}, Settings: "x"}, func() ([]byte, error) { times++; return nil, fault }); !errors.Is(err, fault) || times != 1 {
		t.Errorf("decoded %d times, error %v", times, err)
	}
}
