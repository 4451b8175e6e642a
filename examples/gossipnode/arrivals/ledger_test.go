package arrivals

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// life is a process that watches a folder, in made-up time.
type life struct {
	*Folder
	said     []string
	new, old string // rows that were handed out
	files    []File
}

func begin(dir, checkpoint string, most int) (*life, error) {
	l := &life{}
	l.Folder = &Folder{
		Dir: dir, Wants: "x.rows", Read: lines, Ledger: NewLedger(""), most: most, Say: func(text string) { l.said = append(l.said, text) },
		Takes: func(string) (bool, bool) { return true, false },
	}
	if checkpoint == "" {
		return l, nil
	}
	return l, l.Ledger.Resume(checkpoint)
}

func (l *life) look(t *testing.T) {
	for second := range 8 {
		l.Look(t.Context(), time.Unix(2_000_000+int64(second), 0), func(file File) bool {
			l.files = append(l.files, file)
			l.new, l.old = l.new+labels(file, file.New), l.old+labels(file, file.Old)
			return true
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestALaterLifeReadsOn: what waited, and what was added, comes as new; what was kept as old; nothing else of a file that is the same.
// A file that is another is read anew, and said so; one that is gone with rows that waited is named.
func TestALaterLifeReadsOn(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "grows.rows", "1\n2\n3\n4\n5\n")
	put(t, dir, "stays.rows", "6\n6\n")
	put(t, dir, "shorter.rows", "7\n7\n7\n")
	put(t, dir, "other.rows", "8\n8\n")
	put(t, dir, "gone.rows", "9\n9\n")
	first, _ := begin(dir, "", MaxFiles)
	first.look(t)
	if first.new != "99123458877766" || first.old != "" {
		t.Fatalf("the first life got %q and %q", first.new, first.old)
	}
	// A training has seen all but rows 1 and 2 of the file that grows, and all of the one that will be gone; row 3 is kept.
	var seen, kept []Row
	for _, file := range first.files {
		for _, r := range file.New {
			if file.Name == "gone.rows" || file.Name == "grows.rows" && (r.at == 1 || r.at == 2) {
				continue
			}
			seen = append(seen, r)
		}
		if file.Name == "grows.rows" {
			kept = file.New[3:4]
		}
	}
	first.Ledger.Trained(seen, kept)
	checkpoint := first.Ledger.Text()
	put(t, dir, "grows.rows", "1\n2\n3\n4\n5\n0\n")
	put(t, dir, "shorter.rows", "7\n")
	put(t, dir, "other.rows", "1\n8\n8\n")
	if err := os.Remove(filepath.Join(dir, "gone.rows")); err != nil {
		t.Fatal(err)
	}
	second, err := begin(dir, checkpoint, MaxFiles)
	if err != nil {
		t.Fatal(err)
	}
	if before := second.Ledger.Text(); before != checkpoint {
		t.Errorf("before a file is read, a checkpoint says %s, not %s", before, checkpoint)
	}
	second.look(t)
	if second.new != "230"+"188"+"7" || second.old != "4" {
		t.Errorf("the second life got %q as new and %q as old", second.new, second.old)
	}
	for _, want := range []string{"gone.rows is gone, with 2 rows", "grows.rows was read before: of its 6 rows, 3", "other.rows is another file", "shorter.rows is another file"} {
		if !slices.ContainsFunc(second.said, func(said string) bool { return strings.Contains(said, want) }) {
			t.Errorf("said %q, without %q", second.said, want)
		}
	}
	if third, err := begin(dir, second.Ledger.Text(), MaxFiles); err != nil {
		t.Error(err)
	} else if third.look(t); third.new != second.new || third.old != "4" {
		t.Errorf("after a second restart %q and %q", third.new, third.old)
	}
}

// TestLedgersThatContradictThemselves are named, and all is read as new.
func TestLedgersThatContradictThemselves(t *testing.T) {
	for _, text := range []string{
		"", "?", `{"part":"1/2","files":{}}`, `{"files":{"a":null}}`, `{"files":{"a":{"size":-1}}}`, `{"files":{"a":{"rows":2,"waiting":[[1,3]]}}}`,
		`{"files":{"a":{"rows":9,"waiting":[[3,5],[4,6]]}}}`, `{"files":{"a":{"rows":9,"kept":[[3,3]]}}}`, `{"files":{"a":{"rows":9,"kept":[[-1,3]]}}}`,
	} {
		l := NewLedger("")
		if err := l.Resume(text); !errors.Is(err, ErrLedger) || len(l.files) > 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFullFolder: when there is no room for a file, those that are gone are forgotten; if none is, what waits is named once.
func TestFullFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		put(t, dir, fmt.Sprintf("%d.rows", i), fmt.Sprintf("%d\n", i))
	}
	l, _ := begin(dir, "", 3)
	l.look(t)
	if l.new != "012" || len(l.said) != 1 || !strings.Contains(l.said[0], "3.rows waits: the folder has 3 files") {
		t.Errorf("got %q, said %q", l.new, l.said)
	}
	if err := os.Remove(filepath.Join(dir, "1.rows")); err != nil {
		t.Fatal(err)
	}
	if l.look(t); l.new != "0123" || strings.Contains(l.Ledger.Text(), "1.rows") {
		t.Errorf("got %q, accounts %s", l.new, l.Ledger.Text())
	}
}
