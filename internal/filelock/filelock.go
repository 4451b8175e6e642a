// Package filelock locks files between the processes of a machine. The system lets go of a lock when its process ends,
// in whichever way.
package filelock

import "errors"

var (
	// ErrHeld: another has locked the file.
	ErrHeld = errors.New("locked by another process")
	// ErrNone: this system, or the file's file system, has no locks.
	ErrNone = errors.New("no file locks here")
)
