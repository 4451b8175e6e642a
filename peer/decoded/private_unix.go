//go:build unix

package decoded

import (
	"io/fs"
	"os"
	"syscall"
)

// private tells whether this user owns a folder, and nobody else has access to it.
func private(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
