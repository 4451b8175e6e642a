package decoded

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// version is that of the form of files.
const version = 1

// settled is how long ago a file must have changed: one that changes twice within a step of its file system's clock, and
// keeps its size, would look as before.
const settled = 2 * time.Second

var errFresh = errors.New("a file that changed just now, or no regular one")

// Recipe says what something is made of: the files that are read, and all else that the bytes depend on, such as what
// they are and how they are decoded.
type Recipe struct {
	Files    []string
	Settings string
}

// name is a digest of the recipe, of its files as they are now, and of this program, since another's decoders may differ.
func (r Recipe) name() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%d %q\n", version, r.Settings)
	for i, path := range append([]string{program}, r.Files...) {
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() || i > 0 && time.Since(info.ModTime()) < settled {
			return "", fmt.Errorf("%w: %s", errFresh, path)
		}
		fmt.Fprintf(hash, "%q %d %v\n", path, info.Size(), info.ModTime())
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}
