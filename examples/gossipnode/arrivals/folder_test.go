package arrivals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

// lines reads a file of one label a line.
func lines(_ context.Context, path string) (*dataset.Set, int, error) {
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, 0, err
	case strings.Contains(string(text), "!"):
		return nil, 0, errors.New("it is damaged")
	case !strings.HasSuffix(string(text), "\n"):
		return nil, 0, ErrUnfinished
	}
	labels := []uint8{}
	for _, line := range strings.Fields(string(text)) {
		labels = append(labels, line[0]-'0')
	}
	set, err := dataset.NewSet(make([]uint8, len(labels)), labels, dataset.Shape{Height: 1, Width: 1, Channels: 1}, 10, dataset.Normalization{Scale: 1})
	return set, 0, err
}

// labels are those of rows of a file.
func labels(file File, rows []Row) (text string) {
	for _, r := range rows {
		text += fmt.Sprint(file.Row(r).Label(0))
	}
	return text
}

// TestFolder: files are read once and whole, what cannot be read is named once and nothing of it is used, and what is added later
// comes later. The time is made up, that of the files too.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	var said []string
	f := &Folder{
		Dir: dir, Wants: "x.rows", Read: lines, Say: func(text string) { said = append(said, text) },
		Takes: func(name string) (is, companion bool) {
			return strings.HasSuffix(name, ".rows"), strings.HasSuffix(name, ".labels")
		},
	}
	now := time.Unix(1_000_000, 0)
	got := ""
	look := func(seconds int) {
		for range seconds {
			now = now.Add(time.Second)
			f.Look(t.Context(), now, func(file File) bool {
				got += file.Name + ":" + labels(file, file.New) + " "
				return true
			})
		}
	}
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	want := func(rows string, lines ...string) {
		t.Helper()
		if got != rows {
			t.Errorf("got %q, want %q", got, rows)
		}
		if len(said) != len(lines) {
			t.Errorf("said %q, want %q", said, lines)
		} else {
			for i, line := range lines {
				if !strings.Contains(said[i], line) {
					t.Errorf("said %q, want %q", said[i], line)
				}
			}
		}
		got, said = "", nil
	}
	look(3)
	want("", "is empty: waiting for x.rows")
	put("a.rows", "1\n2\n")
	put("b.rows", "3\n")
	put("b.labels", "?")
	put("c.rows.part", "9\n")
	put(".d.rows", "9\n")
	put("other.txt", "9\n")
	look(2)
	want("", "other.txt: it is not read: want x.rows")
	look(5)
	want("a.rows:12 b.rows:3 ")
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link.rows")); err != nil {
		t.Fatal(err)
	}
	look(2)
	want("", "link.rows: it cannot be read: it is no file")
	put("half.rows", "4\n5")
	look(8)
	want("")
	put("half.rows", "4\n5\n6")
	look(30)
	want("", "half.rows: it does not end with a line break")
	put("half.rows", "4\n5\n6\n")
	look(4)
	want("half.rows:456 ", "half.rows: it could be read now")
	put("bad.rows", "7\n!\n")
	look(40)
	want("", "bad.rows: it is damaged")
	if f.Refused != 1 {
		t.Errorf("%d are refused", f.Refused)
	}
	put("a.rows", "1\n2\n8\n9\n")
	look(4)
	want("a.rows:89 ", "of its 4 rows, 2 were added")
	put("b.rows", "")
	look(4)
	put("b.rows", "5\n5\n")
	look(4)
	want("b.rows:55 ", "b.rows is another file")
	put("long.rows", "1\n")
	for i := range 6 {
		look(1)
		put("long.rows", strings.Repeat("1\n", i+2))
	}
	want("")
	look(3)
	want("long.rows:1111111 ")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	look(3)
	want("", "the folder cannot be read")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put("new.rows", "2\n")
	look(4)
	want("new.rows:2 ")
}

// TestFileThatGrowsWhileItIsRead counts for nothing then.
func TestFileThatGrowsWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.rows")
	grow := 3
	f := &Folder{Dir: dir, Takes: func(string) (bool, bool) { return true, false }, Say: func(string) {}, Read: func(ctx context.Context, path string) (*dataset.Set, int, error) {
		set, out, err := lines(ctx, path)
		if grow--; grow > 0 {
			file, fault := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if fault != nil {
				t.Fatal(fault)
			}
			defer file.Close()
			_, _ = file.WriteString("4\n")
		}
		return set, out, err
	}}
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	now, sum, times := time.Unix(1_000_000, 0), 0, 0
	for range 20 {
		now = now.Add(time.Second)
		f.Look(t.Context(), now, func(file File) bool { sum, times = sum+len(file.New), times+1; return true })
	}
	if sum != 3 || times != 1 {
		t.Errorf("%d rows, %d times, want three at once", sum, times)
	}
}
