package dataset

import (
	"encoding/binary"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// touches returns a function that lists the files in a folder, and in those below it, that were opened meanwhile.
func touches(t *testing.T, dir string) (files func() []string) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(watch) })
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_, err = unix.InotifyAddWatch(watch, path, unix.IN_OPEN)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() (names []string) {
		buffer := make([]byte, 1<<20)
		n, _ := unix.Read(watch, buffer) // fails if nothing was opened
		for all := buffer[:max(n, 0)]; len(all) > 0; {
			mask, size := binary.NativeEndian.Uint32(all[4:]), binary.NativeEndian.Uint32(all[12:])
			if mask&unix.IN_ISDIR == 0 {
				names = append(names, strings.TrimRight(string(all[16:16+size]), "\x00"))
			}
			all = all[16+size:]
		}
		return names
	}
}
