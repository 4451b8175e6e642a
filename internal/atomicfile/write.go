// Package atomicfile writes files that stay complete after a crash or a power cut: they have either the old contents
// or the new ones.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the contents of the file at path, which only its owner may read.
func Write(path string, content []byte) error {
	return Replace(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace lets write fill a file beside path, and renames it to path when it is complete and on disk. A file that a
// crash has left is overwritten by the next call.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".partial")
	if err := Remove(partial); err != nil {
		return err
	}
	// O_EXCL with the mode makes sure that nobody else has opened it before.
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, Remove(partial))
	}
	if folder, err := os.Open(filepath.Dir(path)); err == nil { // not all systems can open folders
		_ = folder.Sync() // so that the new name survives too, if the system can
		_ = folder.Close()
	}
	return nil
}

// Remove removes a file if it exists.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
