package admit

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/seed-97356399/murmuration/peer/transport"
)

const (
	// maxAllowFile bounds the file of a list, in bytes.
	maxAllowFile = 1 << 20
	// maxAllowed bounds the ids on it.
	maxAllowed = 1 << 14
)

// list is a file of ids; the last content without a fault counts. A nil list has every id.
type list struct {
	path  string
	check func(transport.PeerID) error
	last  atomic.Pointer[allowed]
}

// allowed is a list as it was read.
type allowed struct {
	ids  map[transport.PeerID]struct{}
	file fs.FileInfo
}

func openList(path string, check func(transport.PeerID) error) (*list, error) {
	if check == nil {
		check = func(transport.PeerID) error { return nil }
	}
	l := &list{path: path, check: check}
	read, err := l.read()
	l.last.Store(read)
	return l, err
}

func (l *list) has(id transport.PeerID) bool {
	if l == nil {
		return true
	}
	_, ok := l.last.Load().ids[id]
	return ok
}

func (l *list) len() int { return len(l.last.Load().ids) }

// read reads the file. If the file changes meanwhile, its info differs the next time.
func (l *list) read() (*allowed, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %w: make the file, with the id of a peer in each line", err)
	}
	content, err := os.ReadFile(l.path)
	if err == nil && len(content) > maxAllowFile {
		err = fmt.Errorf("it has more than %d bytes", maxAllowFile)
	}
	var ids map[transport.PeerID]struct{}
	if err == nil {
		ids, err = parseAllowed(content, l.check)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of peers: %s: %w", l.path, err)
	}
	return &allowed{ids: ids, file: info}, nil
}

// reload reads the list again if its file has changed. It returns the peers that were
// removed.
func (l *list) reload() (removed []transport.PeerID, changed bool, err error) {
	old := l.last.Load()
	info, err := os.Stat(l.path)
	if err != nil {
		return nil, false, fmt.Errorf("looking at the list of peers: %w", err)
	}
	if os.SameFile(info, old.file) && info.ModTime().Equal(old.file.ModTime()) && info.Size() == old.file.Size() {
		return nil, false, nil
	}
	read, err := l.read()
	if err != nil {
		return nil, false, err
	}
	l.last.Store(read)
	for id := range old.ids {
		if _, still := read.ids[id]; !still {
			removed = append(removed, id)
		}
	}
	return removed, true, nil
}

// parseAllowed reads an id a line. What follows a # is a comment.
func parseAllowed(content []byte, check func(transport.PeerID) error) (map[transport.PeerID]struct{}, error) {
	ids := make(map[transport.PeerID]struct{})
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text, _, _ := strings.Cut(string(line), "#")
		id := transport.PeerID(strings.TrimSpace(text))
		if id == "" {
			continue
		}
		err := transport.CheckID(id)
		if err == nil {
			err = check(id)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: put one id in each line", number, err)
		}
		if len(ids) >= maxAllowed {
			return nil, fmt.Errorf("line %d: more than %d peers", number, maxAllowed)
		}
		ids[id] = struct{}{}
	}
	return ids, nil
}
