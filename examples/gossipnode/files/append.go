package files

import (
	"os"
	"sync"
)

// Lines is a file to which whole lines are appended, by several processes too. Safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	file *os.File
	torn bool // the last write has failed, and may have left a part of a line
}

// Append opens a file for lines, and creates it if it is missing. Anew empties it first. A file that is empty begins with head.
func Append(path string, anew bool, head string) (*Lines, error) {
	how := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if anew {
		how |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, how, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Lines{file: file}
	info, err := file.Stat()
	if err == nil && info.Size() == 0 && head != "" {
		err = l.Write([]byte(head))
	}
	if err != nil {
		_ = file.Close() // the first error is returned
		return nil, err
	}
	return l, nil
}

// Write appends lines, each with its end, by one call of the system, so that a process that is killed leaves whole ones. After
// an error the next begins a new line.
func (l *Lines) Write(lines []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	_, err := l.file.Write(lines)
	l.torn = err != nil
	return err
}

// Close closes the file. Nil has nothing to close.
func (l *Lines) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
