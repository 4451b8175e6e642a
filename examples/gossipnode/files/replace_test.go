package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path, partial := filepath.Join(dir, "key"), filepath.Join(dir, ".key.partial")
	if err := os.WriteFile(partial, []byte("left by a crash, and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	fails := errors.New("disk full")
	for _, c := range []struct {
		write func(io.Writer) error
		err   error
		holds string
	}{
		{Text([]byte("one")), nil, "one"},
		{func(w io.Writer) error { return errors.Join(Text([]byte("two"))(w), fails) }, fails, "one"},
		{Text([]byte("three")), nil, "three"},
	} {
		if err := Replace(path, 0o600, c.write); !errors.Is(err, c.err) {
			t.Fatalf("%v, want %v", err, c.err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.holds {
			t.Errorf("the file holds %q, %v, want %q", got, err, c.holds)
		}
		if _, err := os.Stat(partial); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a part is left: %v", err)
		}
	}
	if err := Create(path, 0o600, Text(nil)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("what is there was created: %v", err)
	}
	if err := Replace(dir, 0o600, Text(nil)); err == nil {
		t.Error("a folder was replaced")
	}
}
