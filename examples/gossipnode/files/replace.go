// Package files writes files that stay complete after a crash or a power cut: they have either the old contents or
// the new ones.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace lets write fill a file beside path, and renames it to path when it is complete and on disk. A file that a
// crash has left is overwritten by the next call.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return fmt.Errorf("%s is no file: a file would take its place", path) // for all, if root says /dev/null
	}
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

// Create lets write fill a new file, and removes it if that fails. If the file exists, the error is fs.ErrExist. The
// file survives a power cut.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	// O_EXCL with the mode makes sure that nobody else has opened it before.
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

// Read reads a file of at most most bytes.
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

// Text is a write function for Replace and Create that writes a text.
func Text(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// Remove removes a file if it exists.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolder makes a new name survive a power cut, if the system can: not all systems can open folders.
func syncFolder(dir string) {
	if folder, err := os.Open(dir); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
}
