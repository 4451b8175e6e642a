package bridge

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapSealed maps the first size bytes of a file that is sealed against shrinking.
func mapSealed(file *os.File, size int) (content []byte, unmap func() error, ok bool) {
	if size == 0 {
		return nil, nil, false
	}
	seals, err := unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, nil, false
	}
	if info, err := file.Stat(); err != nil || info.Size() < int64(size) { // it may have shrunk before it was sealed
		return nil, nil, false
	}
	content, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil { // the file may be sealed against writing: store reports that
		return nil, nil, false
	}
	return content, func() error { return unix.Munmap(content) }, true
}
