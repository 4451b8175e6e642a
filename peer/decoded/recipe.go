package decoded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// version is the version of the file format.
const version = 1

// settled is the least time since a file has changed. A file that changes twice within one step of its file system's clock,
// and keeps its size, would look unchanged.
const settled = 2 * time.Second

var errFresh = errors.New("a file that changed just now, or no regular one")

// Recipe names all that the decoded bytes depend on: the files that are read, and the settings, such as what is decoded
// and how.
type Recipe struct {
	Files    []string
	Settings string
}

// program is this program's file as it was at first: another may get its name while it runs.
var program = sync.OnceValues(func() (string, error) {
	path, _ := os.Executable() // no file is called "", as it is if this fails
	_, version, err := versionOf(path)
	return version, err
})

// versionOf returns what changes when a file is changed or replaced: its size, its times, and on unix its inode.
func versionOf(path string) (info fs.FileInfo, version string, err error) {
	if info, err = os.Stat(path); err != nil {
		return nil, "", err
	}
	return info, fmt.Sprintf("%q %d %v %s", path, info.Size(), info.ModTime(), inode(path)), nil
}

// name is a digest of the recipe, of the versions of the files, and of that of this program, as decoders of another may differ.
func (r Recipe) name() (string, error) {
	by, err := program()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %q %s\n", version, r.Settings, by)
	for _, path := range r.Files {
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		info, file, err := versionOf(path)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() || time.Since(info.ModTime()) < settled {
			return "", fmt.Errorf("%w: %s", errFresh, path)
		}
		fmt.Fprintln(hash, file)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}
