// Package atomicfile writes files that a crash or a power cut leaves whole: with the old
// contents or the new ones, never with a part.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes content that of the file at path, which only its owner may read.
func Write(path string, content []byte) error {
	return Replace(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace has write fill a file beside path, and puts it there in one step when it is
// whole and on disk. What a crash leaves of one is overwritten by the next.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".partial")
	if err := Remove(partial); err != nil {
		return err
	}
	// O_EXCL and the mode together: nobody else can have opened it before.
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
	if folder, err := os.Open(filepath.Dir(path)); err == nil { // not all systems open folders
		_ = folder.Sync() // so that the new name lasts too, where the system can
		_ = folder.Close()
	}
	return nil
}

// Remove removes a file if it is there.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
