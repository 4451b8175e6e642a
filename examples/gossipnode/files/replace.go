// Package files writes files that a crash or a power cut leaves whole: with the old
// contents or the new ones, never with a part.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace has write fill a file beside path, and puts it there in one step when it is
// whole and on disk. What a crash leaves of one is overwritten by the next.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".partial")
	if err := Remove(partial); err != nil {
		return err
	}
	if err := Create(partial, mode, write); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return errors.Join(err, Remove(partial))
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// Create has write fill a file that was not there, else the error is fs.ErrExist, and
// removes it if that fails. The file stays there through a power cut.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	// O_EXCL and the mode together: nobody else can have opened it before.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, Remove(path))
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// Read is a file of at most so many bytes.
func Read(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}

// Text writes a text, for Replace and Create.
func Text(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// Remove removes a file if it is there.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes a new name last through a power cut, where the system can: not all of
// them open folders.
func syncFolder(dir string) {
	if folder, err := os.Open(dir); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}
