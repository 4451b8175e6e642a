//go:build unix

package decoded

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// private tells whether this user owns a folder, and nobody else has access to it.
func private(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// inode is the number of a file, and when it was last changed: unlike the time of its content, no program sets that.
func inode(path string) string {
	var stat unix.Stat_t
	_ = unix.Stat(path, &stat) // zeros are no file's if it fails
	return fmt.Sprint(stat.Ino, stat.Ctim)
}
