// Package arrivals watches a folder into which files of rows or pictures come. Each file is read once it is whole: when it has
// not changed for some seconds and its reader finds its end. What cannot be read is named, and tried again; nothing there
// is ever changed or removed, so a user may remove what has been read.
//
// A file of text that grows later is read again for what was added. Limits: no folders below; MaxFiles files.
package arrivals

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-97356399/murmuration/examples/zoo/dataset"
)

const (
	// MaxFiles is the most files that are watched; others are named.
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

	files   map[string]*file
	missing bool // the folder, or all files
	Refused int  // files that could not be read so far
}

// file is what is known of a file.
type file struct {
	size    int64
	changed time.Time // by its own time
	since   time.Time // when it was first seen so
	tried   time.Time // when it was read last, zero if it was not since it changed
	done    bool      // it was read since it changed
	rows    int       // that were taken of it
	failed  bool
	told    string // the last fault
}

// Look reads the files that have become whole, and hands out the rows of each. It ends early with ctx, or if hand returns false.
func (f *Folder) Look(ctx context.Context, now time.Time, hand func(name string, rows *dataset.Set) bool) {
	if f.files == nil {
		f.files = make(map[string]*file)
	}
	entries, err := os.ReadDir(f.Dir)
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
func (f *Folder) see(ctx context.Context, e fs.DirEntry, now time.Time, hand func(string, *dataset.Set) bool) bool {
	is, companion := f.Takes(e.Name())
	if companion {
		return true
	}
	known := f.files[e.Name()]
	if known == nil {
		if len(f.files) == MaxFiles {
			return true // told with the last one below
		}
		known = &file{size: -1}
		if f.files[e.Name()] = known; len(f.files) == MaxFiles {
			f.tell(known, e.Name(), fmt.Sprintf("the folder has %d files: those that come later are not read; move away what has been read, and start again", MaxFiles))
		}
	}
	info, err := os.Stat(filepath.Join(f.Dir, e.Name())) // of what a link names
	switch {
	case !is:
		f.tell(known, e.Name(), "it is not read: want "+f.Wants)
		return true
	case err != nil || !info.Mode().IsRegular():
		f.tell(known, e.Name(), fmt.Sprintf("it cannot be read: %v", err))
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
func (f *Folder) read(ctx context.Context, known *file, name string, now time.Time, hand func(string, *dataset.Set) bool) bool {
	path := filepath.Join(f.Dir, name)
	rows, leftOut, err := f.Read(ctx, path)
	known.tried = now
	if info, fault := os.Stat(path); fault != nil || info.Size() != known.size || !info.ModTime().Equal(known.changed) {
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
	before, all := known.rows, rows.Len()
	known.done, known.rows = true, all
	switch {
	case before == 0:
	case all >= before:
		rest := make([]int32, all-before)
		for i := range rest {
			rest[i] = int32(before + i)
		}
		rows = rows.Subset(rest)
		f.Say(fmt.Sprintf("%s has changed after it was read: %d rows that were added count, and no others", name, len(rest)))
	default:
		f.Say(name + " has become shorter after it was read: it counts as another file")
	}
	return rows.Len() == 0 || hand(name, rows)
}

// tell tells a fault of a file, unless it was the last that was told.
func (f *Folder) tell(known *file, name, text string) {
	if known.told != text {
		known.told = text
		f.Say(name + ": " + text)
	}
}
