// Package arrivals watches a folder into which files of rows or pictures come. Each file is read once it is whole: when it has
// not changed for some seconds and its reader finds its end. What cannot be read is named, and tried again; nothing there
// is ever changed or removed.
//
// A file that grows later is read again for what was added. One that is shorter, or begins otherwise, is another file. A Ledger
// tells what became of the rows of each, also to a later life. Limits: no folders below; MaxFiles files.
package arrivals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

const (
	// MaxFiles is the most files that are watched. Then those that are not there any more are forgotten; if all are, later ones
	// wait until some are moved away.
	MaxFiles = 1 << 16
	// Every is the time between two looks.
	Every = time.Second
	// settled is how long a file must not change before it is read, named how long before what it lacks is told.
	settled, named = 2 * time.Second, 10 * time.Second
	// again is the time between two attempts at a file that could not be read.
	again = 10 * time.Second
)

// ErrUnfinished: a file has no end yet.
var ErrUnfinished = errors.New("it does not end with a line break: it may be half written")

// Folder is a folder that is watched. It is for one goroutine.
type Folder struct {
	Dir string
	// Takes tells whether a file is read, by its name, and whether it belongs to one that is. Wants says in words which are.
	Takes func(name string) (is, companion bool)
	Wants string
	// Read reads a file whole, and how many rows of it cannot be used.
	Read func(ctx context.Context, path string) (rows *dataset.Set, leftOut int, err error)
	// Say tells a person what is wrong, or done.
	Say func(text string)
	// Mine tells whether this member uses a row of a file, by its number; nil for all.
	Mine func(row int) bool
	// Ledger is what became of the rows. Default: an empty one.
	Ledger *Ledger

	files   map[string]*file
	most    int  // MaxFiles, but in tests
	missing bool // the folder, or all files
	full    bool // a file waits for room
	Refused int  // files that could not be read so far
}

// File is rows of a file that have come. New ones no training has seen, Old ones were kept by the life before.
type File struct {
	Name     string
	Rows     *dataset.Set
	New, Old []Row
}

// Row is a row of the file.
func (f File) Row(r Row) *dataset.Set { return f.Rows.Subset([]int32{r.at}) }

// file is what is known of a file.
type file struct {
	size    int64
	changed time.Time // by its own time
	since   time.Time // when it was first seen so
	tried   time.Time // when it was read last, zero if it was not since it changed
	done    bool      // it was read since it changed
	failed  bool
	told    string // the last fault
}

// Begin is the rows that there are before any file comes.
func (f *Folder) Begin(name string, rows *dataset.Set) File {
	f.prepare()
	was, _ := f.Ledger.known("")
	file := File{Name: name, Rows: rows}
	file.New, file.Old = f.Ledger.read("", account{Rows: rows.Len()}, was.Rows != rows.Len(), func(int) bool { return true })
	return file
}

func (f *Folder) prepare() {
	if f.Ledger == nil {
		f.Ledger = NewLedger("")
	}
	if f.Mine == nil {
		f.Mine = func(int) bool { return true }
	}
	f.most = cmp.Or(f.most, MaxFiles)
}

// Look reads the files that have become whole, and hands out the rows of each. It ends early with ctx, or if hand returns false.
func (f *Folder) Look(ctx context.Context, now time.Time, hand func(File) bool) {
	f.prepare()
	entries, err := os.ReadDir(f.Dir)
	first := f.files == nil && err == nil
	if first {
		f.files = make(map[string]*file)
	}
	if err == nil && (first || f.full) {
		f.compare(entries, first)
	}
	seen := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.IsDir() || unfinished(e.Name()) {
			continue
		}
		seen++
		if ctx.Err() != nil || !f.see(ctx, e, now, hand) {
			return
		}
	}
	was := f.missing
	switch f.missing = err != nil || seen == 0; {
	case err != nil && !was:
		f.Say(fmt.Sprintf("the folder cannot be read: %v: what comes is read once it can be", err))
	case f.missing && !was:
		f.Say(fmt.Sprintf("%s is empty: waiting for %s", f.Dir, f.Wants))
	}
}

// compare names, at first, files that are gone with rows that no training has seen. When a file waits for room, it forgets those that
// are gone.
func (f *Folder) compare(entries []fs.DirEntry, first bool) {
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	if lost := f.Ledger.gone(there); first {
		for _, name := range slices.Sorted(maps.Keys(lost)) {
			f.Say(fmt.Sprintf("%s is gone, with %d rows that no training has seen: they are used if it comes back", name, lost[name]))
		}
	}
	if before := len(f.files); f.full {
		f.Ledger.forget(there)
		maps.DeleteFunc(f.files, func(name string, _ *file) bool { return !there[name] })
		f.full = len(f.files) == before
	}
}

// unfinished tells whether a name is one that programs give to files that they still write.
func unfinished(name string) bool {
	for _, suffix := range []string{".tmp", ".part", ".partial", ".crdownload", ".swp", "~"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// see looks at one file.
func (f *Folder) see(ctx context.Context, e fs.DirEntry, now time.Time, hand func(File) bool) bool {
	is, companion := f.Takes(e.Name())
	if companion {
		return true
	}
	known := f.files[e.Name()]
	if known == nil {
		if len(f.files) >= f.most || f.Ledger.full(e.Name(), f.most) {
			if !f.full {
				f.full = true
				f.Say(fmt.Sprintf("%s waits: the folder has %d files. What comes later is read once files that were read are moved away", e.Name(), f.most))
			}
			return true
		}
		known = &file{size: -1}
		f.files[e.Name()] = known
	}
	info, err := os.Stat(filepath.Join(f.Dir, e.Name())) // of what a link names
	switch {
	case !is:
		f.tell(known, e.Name(), "it is not read: want "+f.Wants)
		return true
	case err != nil || !info.Mode().IsRegular():
		f.tell(known, e.Name(), fmt.Sprintf("it cannot be read: %v", cmp.Or(err, errors.New("it is no file"))))
		return true
	case info.Size() != known.size || !info.ModTime().Equal(known.changed):
		known.size, known.changed, known.since, known.done, known.tried = info.Size(), info.ModTime(), now, false, time.Time{}
	}
	if known.done || now.Sub(known.since) < settled || !known.tried.IsZero() && now.Sub(known.tried) < again {
		return true
	}
	return f.read(ctx, known, e.Name(), now, hand)
}

// read reads a file that is still.
func (f *Folder) read(ctx context.Context, known *file, name string, now time.Time, hand func(File) bool) bool {
	path := filepath.Join(f.Dir, name)
	before, was := f.Ledger.known(name)
	same := f.goesOn(path, known.size, before)
	if was && same && known.size == before.Size && len(before.Waiting)+len(before.Kept) == 0 {
		known.done = true // nothing of it is new
		return true
	}
	rows, leftOut, err := f.Read(ctx, path)
	known.tried = now
	head, fault := headOf(path, known.size)
	if info, gone := os.Stat(path); gone != nil || fault != nil || info.Size() != known.size || !info.ModTime().Equal(known.changed) {
		return true // it has changed meanwhile: what was read counts for nothing
	}
	waits := errors.Is(err, ErrUnfinished) || errors.Is(err, dataset.ErrTruncated) || errors.Is(err, dataset.ErrMissing)
	switch {
	case ctx.Err() != nil:
		return false
	case waits && now.Sub(known.since) < named:
		known.tried = time.Time{} // tried again at the next look
		return true
	case err != nil:
		if !known.failed {
			known.failed = true
			f.Refused++
		}
		f.tell(known, name, fmt.Sprintf("%v: it is tried again every %s; nothing of it is used until then", err, again))
		return true
	}
	if known.failed {
		known.failed, known.told = false, ""
		f.Refused--
		f.Say(name + ": it could be read now")
	}
	if leftOut > 0 {
		f.Say(fmt.Sprintf("%s: %d rows or pictures of it cannot be used, and are left out", name, leftOut))
	}
	known.done = true
	another := was && (!same || rows.Len() < before.Rows)
	if another {
		f.Say(fmt.Sprintf("%s is another file than the one that was read before: it is read anew", name))
	}
	file := File{Name: name, Rows: rows}
	file.New, file.Old = f.Ledger.read(name, account{Size: known.size, Head: head, Rows: rows.Len()}, another, f.Mine)
	if was && !another {
		f.Say(fmt.Sprintf("%s was read before: of its %d rows, %d were added or are new to trainings, and no others", name, rows.Len(), len(file.New)))
	}
	return len(file.New)+len(file.Old) == 0 || hand(file)
}

// goesOn tells whether a file may be the one that an account is of, and not another of its name.
func (f *Folder) goesOn(path string, size int64, before account) bool {
	head, err := headOf(path, before.Size)
	return err == nil && size >= before.Size && head == before.Head
}

// tell tells a fault of a file, unless it was the last that was told.
func (f *Folder) tell(known *file, name, text string) {
	if known.told != text {
		known.told = text
		f.Say(name + ": " + text)
	}
}
