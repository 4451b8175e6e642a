package arrivals

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
)

// LedgerKey is the key of a ledger in the metadata of a checkpoint.
const LedgerKey = "arrived"

// headBytes is how many bytes a file begins with that tell it from another of its name.
const headBytes = 4096

// Ledger is what became of the rows of each file. Its text stands in checkpoints, so that a later life reads on where the
// one before was. It has an account for MaxFiles files. Any goroutine may use it.
type Ledger struct {
	mu      sync.Mutex
	part    string // of the rows of each file
	files   map[string]*account
	waiting map[Row]bool // no training has seen them
	kept    []Row        // they are trained on again
}

// account is what became of the rows of a file. Waiting and Kept are as in the text, until the file is read again.
type account struct {
	Size    int64  `json:"size"`
	Head    uint32 `json:"head"` // CRC32C of its first bytes
	Rows    int    `json:"rows"` // that were read
	Waiting []span `json:"waiting,omitempty"`
	Kept    []span `json:"kept,omitempty"`
}

// span is rows that follow each other: from the first, to before the second.
type span [2]int32

// Row is a row of a file.
type Row struct {
	of *account // a file that is another now has another
	at int32
}

// text is how a ledger stands in a checkpoint.
type text struct {
	Part  string              `json:"part,omitempty"`
	Files map[string]*account `json:"files"`
}

// NewLedger makes a ledger of a part of the rows of each file, I/N, or of all rows.
func NewLedger(part string) *Ledger {
	return &Ledger{part: part, files: make(map[string]*account), waiting: make(map[Row]bool)}
}

// ErrLedger: a checkpoint does not tell what was read of which file.
var ErrLedger = errors.New("all files are read as new")

// Resume takes over what a checkpoint says; if it says nothing that can be used, the ledger stays empty.
func (l *Ledger) Resume(from string) error {
	var was text
	if err := json.Unmarshal([]byte(from), &was); err != nil {
		return fmt.Errorf("%w: the checkpoint does not tell what was read of which: %w", ErrLedger, err)
	}
	if was.Part != l.part {
		return fmt.Errorf("%w: --part was %q before and is %q now", ErrLedger, was.Part, l.part)
	}
	if len(was.Files) > MaxFiles {
		return fmt.Errorf("%w: the checkpoint tells of %d, at most %d", ErrLedger, len(was.Files), MaxFiles)
	}
	for name, a := range was.Files {
		if a == nil || a.Size < 0 || !ordered(a.Waiting, a.Rows) || !ordered(a.Kept, a.Rows) {
			return fmt.Errorf("%w: what the checkpoint tells of %.64q contradicts itself", ErrLedger, name)
		}
	}
	if was.Files != nil {
		l.files = was.Files
	}
	return nil
}

// Text is what stands in a checkpoint.
func (l *Ledger) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, kept := spansOf(slices.Collect(maps.Keys(l.waiting))), spansOf(slices.Clone(l.kept))
	now := text{Part: l.part, Files: make(map[string]*account, len(l.files))}
	for name, a := range l.files {
		now.Files[name] = &account{Size: a.Size, Head: a.Head, Rows: a.Rows, Waiting: append(waiting[a], a.Waiting...), Kept: append(kept[a], a.Kept...)}
	}
	out, _ := json.Marshal(now) // numbers and text
	return string(out)
}

// Trained enters that rows wait no more, and which are kept.
func (l *Ledger) Trained(rows, kept []Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rows {
		delete(l.waiting, r)
	}
	l.kept = kept
}

// known is a copy of the account of a file, and whether there is one.
func (l *Ledger) known(name string) (a account, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.files[name]; of != nil {
		return *of, true
	}
	return account{}, false
}

// read enters that so many rows of a file have been read, and returns which of them are new, and which are old ones that are
// kept. With anew, the file is another than the one of that name before.
func (l *Ledger) read(name string, now account, anew bool, mine func(row int) bool) (fresh, old []Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.files[name]
	if of == nil || anew {
		of = new(account)
		l.files[name] = of
	}
	before := *of
	*of = now // Waiting and Kept are rows of this life from here on
	for i := range now.Rows {
		switch row := (Row{of, int32(i)}); {
		case i >= before.Rows && mine(i), within(before.Waiting, i):
			l.waiting[row] = true
			fresh = append(fresh, row)
		case within(before.Kept, i):
			l.kept = append(l.kept, row)
			old = append(old, row)
		}
	}
	return fresh, old
}

// forget drops the accounts of files that are not there any more.
func (l *Ledger) forget(there map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.files, func(name string, _ *account) bool { return name != "" && !there[name] })
}

// full tells whether there is no room for an account of one more file.
func (l *Ledger) full(name string, most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files[name] == nil && len(l.files) >= most
}

// gone counts the rows that no training has seen of each file that is not there any more.
func (l *Ledger) gone(there map[string]bool) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := make(map[string]int)
	for name, a := range l.files {
		for _, s := range a.Waiting {
			if name != "" && !there[name] {
				lost[name] += int(s[1] - s[0])
			}
		}
	}
	return lost
}

// headOf is a checksum of the first bytes of a file that had this size.
func headOf(path string, size int64) (uint32, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	head := make([]byte, min(size, headBytes))
	_, err = io.ReadFull(file, head)
	return crc32.Checksum(head, crc32.MakeTable(crc32.Castagnoli)), err
}

// spansOf puts rows of each file together that follow each other.
func spansOf(rows []Row) map[*account][]span {
	slices.SortFunc(rows, func(a, b Row) int { return int(a.at) - int(b.at) })
	of := make(map[*account][]span)
	for _, r := range rows {
		if last := len(of[r.of]) - 1; last >= 0 && of[r.of][last][1] == r.at {
			of[r.of][last][1]++
		} else {
			of[r.of] = append(of[r.of], span{r.at, r.at + 1})
		}
	}
	return of
}

// ordered tells whether spans are of so many rows, one after the other.
func ordered(spans []span, rows int) bool {
	at := int32(0)
	for _, s := range spans {
		if s[0] < at || s[1] <= s[0] {
			return false
		}
		at = s[1]
	}
	return int(at) <= rows
}

// within tells whether a row is one of these.
func within(spans []span, row int) bool {
	_, is := slices.BinarySearchFunc(spans, row, func(s span, row int) int {
		switch {
		case int(s[1]) <= row:
			return -1
		case int(s[0]) > row:
			return 1
		}
		return 0
	})
	return is
}
