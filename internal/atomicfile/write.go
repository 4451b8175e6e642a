// Package atomicfile writes small files of a peer that a crash or a power cut leaves
// whole: with the old contents or the new ones, never with a part.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write makes content that of the file at path, which only its owner may read.
func Write(path string, content []byte) (err error) {
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, filepath.Base(path)+".*.tmp") // for its owner alone
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if opened, err := os.Open(folder); err == nil { // not all systems open folders
		_ = opened.Sync() // so that the new name lasts too, where the system can
		_ = opened.Close()
	}
	return nil
}
